"""What data sets of drawn scenes share: splits that are made when first asked for, pictures drawn when loaded."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from mmgen.errors import DataError
from mmgen.parts import Dataset, Picture
from mmgen.tensors import Example

from . import SPLITS, Drawn, Sampled
from .world import KINDS, Box, Scene, sample

WHOLE = "the whole scene"


@dataclass(frozen=True)
class Made:
    """What is made together: scenes, and the examples about them."""

    scenes: tuple[Scene, ...]
    examples: tuple[Example, ...]


class SampledDataset(Dataset, abc.ABC):
    """Splits of what is sampled from the world."""

    name: str  # in plain words

    def __init__(self, config: Sampled) -> None:
        self.config = config
        self.sizes = dict(zip(SPLITS, (config.train_size, config.val_size, config.test_size), strict=True))
        self._made: dict[str, tuple[Made, ...]] = {}

    @abc.abstractmethod
    def make(self, split: str, i: int) -> Made:
        """The i-th of a split: a function of the seed, the split and i, whatever the sizes are."""

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def split(self, name: str) -> Sequence[Example]:
        return tuple(example for made in self.made(name) for example in made.examples)

    def made(self, name: str) -> tuple[Made, ...]:
        """All of a split, made when first asked for. Raises DataError for a name there is not."""
        if name not in SPLITS:
            raise DataError(f"{self.name} have no split '{name}'; there are {', '.join(SPLITS)}")
        if name not in self._made:
            self._made[name] = tuple(self.make(name, i) for i in range(self.sizes[name]))
        return self._made[name]

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "examples": {name: len(self.split(name)) for name in SPLITS},
            "kinds of things": len(KINDS),
            "licence": "made by this program; free of any",
            "source": f"mmgen_scenes, seed {self.config.seed}",
        }


class DrawnDataset(SampledDataset):
    """One whose scenes are seen. Nothing is drawn before a picture is loaded."""

    config: Drawn

    def boxes(self, scene: Scene) -> tuple[list[Box], list[str]]:
        """The boxes of a scene's picture and what is in them: those of the things and, last, the whole picture."""
        named = [f"{thing.color} {thing.kind}" for thing in scene.things]
        return [*(thing.box for thing in scene.things), (0.0, 0.0, 1.0, 1.0)], [*named, WHOLE]

    def pictures(self) -> Iterator[Picture]:
        """One picture a scene, with what a detector might take its boxes for."""
        from .draw import draw
        from .taken_for import taken_for

        for name in SPLITS:
            for scene in (scene for made in self.made(name) for scene in made.scenes):
                boxes, labels = self.boxes(scene)
                loads = partial(draw, scene, self.config.image_size)
                yield Picture(scene.id, loads, boxes, labels, taken_for(scene, labels))


def plain_scene(config: Drawn, split: str, i: int) -> tuple[Random, Scene]:
    """The i-th scene of a split as the data set `scenes` has it, and the generator that it was drawn from. A data set
    that shows it as it is may share its picture's features."""
    rng = Random(f"{config.seed}/{split}/{i}")
    return rng, sample(rng, f"{split}-{i:05d}", config.min_things, config.max_things)


def things(scene: Scene) -> list[dict[str, Any]]:
    """The things of a scene as facts of an example."""
    return [
        {
            "kind": thing.kind,
            "color": thing.color,
            "size": thing.size,
            "place": thing.place,
            "side": thing.side,
            "facing": thing.facing,
            "box": list(thing.box),
        }
        for thing in scene.things
    ]
