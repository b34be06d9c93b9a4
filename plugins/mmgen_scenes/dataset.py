"""The data set: scenes in splits, with their texts, what is known of them, and their pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

from mmgen.errors import DataError
from mmgen.parts import Dataset, Picture
from mmgen.tensors import Example

from . import SPLITS, Scenes, captions, questions
from .phrases import Text
from .world import KINDS, Scene, sample

WHOLE = "the whole scene"


class DrawnScenes(Dataset):
    """Examples of a `Scenes` config. Nothing is drawn before a picture is loaded.

    inputs   "image": the scene's name; "caption": the captions, all of the same two groups of things
    targets  questions about any of the things
    facts    what a metric, a probe or a report may know:
             things     [{kind, color, size, place, side, facing, box, captioned}]
             captions   the same captions, as a list; the first is the one that discovery is judged by
             phrases    for each caption, its noun phrases as [first character, end, [positions in things]]
    """

    def __init__(self, config: Scenes):
        self.config = config
        self.sizes = dict(zip(SPLITS, (config.train_size, config.val_size, config.test_size), strict=True))
        self._made: dict[str, tuple[tuple[Scene, Example], ...]] = {}

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def split(self, name: str) -> Sequence[Example]:
        return tuple(example for _, example in self.scenes(name))

    def pictures(self) -> Iterator[Picture]:
        """One picture a scene; its boxes are those of the things and, last, the whole picture."""
        from .draw import draw

        for name in SPLITS:
            for scene, _ in self.scenes(name):
                yield Picture(
                    key=scene.id,
                    load=partial(draw, scene, self.config.image_size),
                    boxes=[*(thing.box for thing in scene.things), (0.0, 0.0, 1.0, 1.0)],
                    labels=[*(f"{thing.color} {thing.kind}" for thing in scene.things), WHOLE],
                )

    def describe(self) -> dict[str, Any]:
        examples = [example for name in SPLITS for example in self.split(name)]
        return {
            "name": "drawn scenes",
            "examples": self.sizes,
            "questions": sum(len(example.targets) for example in examples),
            "captions": sum(len(example.inputs["caption"]) for example in examples),
            "kinds of things": len(KINDS),
            "licence": "made by this program; free of any",
            "source": f"mmgen_scenes, seed {self.config.seed}",
        }

    def scenes(self, name: str) -> tuple[tuple[Scene, Example], ...]:
        """The scenes of a split beside their examples, made when first asked for."""
        if name not in SPLITS:
            raise DataError(f"drawn scenes have no split '{name}'; there are {', '.join(SPLITS)}")
        if name not in self._made:
            self._made[name] = tuple(make(self.config, name, i) for i in range(self.sizes[name]))
        return self._made[name]


def make(config: Scenes, split: str, i: int) -> tuple[Scene, Example]:
    """The i-th scene of a split and its example: a function of the seed, the split and i, whatever the sizes are."""
    rng = Random(f"{config.seed}/{split}/{i}")
    scene = sample(rng, f"{split}-{i:05d}", config.min_things, config.max_things)
    first, second = rng.sample(range(len(scene.groups)), 2)
    told = (first, second)
    told_of = captions.write(rng, scene, told, config.captions)
    asked = questions.write(rng, scene, told, config.questions)
    texts = tuple(caption.text for caption in told_of)
    captioned = {member for group in told for member in scene.groups[group].members}
    facts = {
        "things": [
            {
                "kind": thing.kind,
                "color": thing.color,
                "size": thing.size,
                "place": thing.place,
                "side": thing.side,
                "facing": thing.facing,
                "box": list(thing.box),
                "captioned": position in captioned,
            }
            for position, thing in enumerate(scene.things)
        ],
        "captions": list(texts),
        "phrases": [_phrases(scene, caption) for caption in told_of],
    }
    targets = tuple(question.text for question in asked)
    return scene, Example(scene.id, {"image": scene.id, "caption": texts}, targets, facts)


def _phrases(scene: Scene, caption: Text) -> list[list[Any]]:
    """Which characters of a caption name which things. Looked for in order: "a ball" begins "a balloon" too."""
    found, end = [], 0
    for phrase, group in zip(caption.phrases, caption.groups, strict=True):
        start = caption.text.index(phrase.text, end)
        end = start + len(phrase.text)
        found.append([start, end, list(scene.groups[group].members)])
    return found
