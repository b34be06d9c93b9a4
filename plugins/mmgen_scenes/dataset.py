"""The data set `scenes`: captions and questions about drawn scenes."""

from __future__ import annotations

from typing import Any

from mmgen.examples import Example

from . import Scenes, captions, dependencies, questions
from .configs import SPLITS
from .drawn import DrawnDataset, SceneSet, plain_scene, things


class DrawnScenes(DrawnDataset):
    """Examples of a `Scenes` config.

    inputs   "image": the scene's name; "caption": the captions, each of two groups of things
    targets  questions about any of the things
    facts    what a metric, a probe or a report may know:
             things     [{kind, color, size, place, side, facing, box, captioned}]; captioned: in the first caption
             captions   the same captions, as a list; discovery is judged by the first
             phrases    for each caption, its noun phrases as [first character, end, [positions in things]]
             parses     for each caption, [head, relation] of each word, see `dependencies.Parse`
    """

    name = "drawn scenes"
    config: Scenes

    def make(self, split: str, i: int) -> SceneSet:
        rng, scene = plain_scene(self.config, split, i)
        first, second = rng.sample(scene.groups, 2)
        written = captions.write(rng, scene, (first, second), self.config.captions, self.config.captions_about)
        targets = questions.write(rng, scene, (first, second), self.config.questions)
        texts = tuple(caption.text for caption in written)
        captioned = {*first.members, *second.members}
        facts = {
            "things": [{**thing, "captioned": place in captioned} for place, thing in enumerate(things(scene))],
            "captions": list(texts),
            "phrases": [caption.spans() for caption in written],
            "parses": [[list(word) for word in dependencies.parse(text)] for text in texts],  # lists, as JSON has
        }
        return (scene,), (Example(scene.id, {"image": scene.id, "caption": texts}, tuple(targets), facts),)

    def describe(self) -> dict[str, Any]:
        examples = [example for name in SPLITS for example in self.split(name)]
        return {
            **super().describe(),
            "questions": sum(len(example.targets) for example in examples),
            "captions": sum(len(example.inputs["caption"]) for example in examples),
        }
