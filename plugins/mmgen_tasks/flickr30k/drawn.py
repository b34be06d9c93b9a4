"""The data set `scene_phrases`, Flickr30K Entities drawn: boxes of the things that captions of scenes name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mmgen_scenes import captions
from mmgen_scenes.detector import propose
from mmgen_scenes.drawn import DrawnDataset, SceneSet, plain_scene, things
from mmgen_scenes.world import SORT, Scene
from mmgen_vision.boxes import Box, union

from mmgen.examples import Example

if TYPE_CHECKING:
    from .config import ScenePhrases


class DrawnPhrases(DrawnDataset):
    """Examples of a `ScenePhrases` config: a caption of the data set `scenes`, and the boxes of the things it names.

    inputs   "image": the scene's name; "caption"
    labels   "phrases": (first character, end, box) of the caption's noun phrases; a box is around all things that the
             phrase names. In the split to evaluate an example has one phrase
    facts    image, the scene's things and, in the split to evaluate, the phrase's type
    """

    name = "drawn scenes with phrases"
    config: ScenePhrases

    def make(self, split: str, i: int) -> SceneSet:
        config = self.config
        rng, scene = plain_scene(config, split, i)
        scene = replace(scene, id=f"phrases{config.proposals or ''}-{scene.id}")
        first, second = rng.sample(scene.groups, 2)
        shared = {"image": scene.id, "things": things(scene)}
        examples = []
        for number, caption in enumerate(captions.write(rng, scene, (first, second), config.captions)):
            phrases = [
                (start, _noun_end(caption.text, start, end), union([scene.things[i].box for i in members]))
                for start, end, members in caption.spans()
            ]
            inputs = {"image": scene.id, "caption": caption.text}
            example_id = f"{scene.id}-{number}"
            if split != config.test_split:
                examples.append(Example(example_id, inputs, (), shared, {"phrases": tuple(phrases)}))
                continue
            for place, (phrase, group) in enumerate(zip(phrases, caption.groups, strict=True)):
                facts = {**shared, "type": SORT[group.kind.name]}
                examples.append(Example(f"{example_id}-{place}", inputs, (), facts, {"phrases": (phrase,)}))
        return SceneSet((scene,), tuple(examples))

    def boxes(self, scene: Scene) -> tuple[list[Box], list[str]]:
        """Boxes near things, and near the box around all things of a group."""
        targets = [(thing.box, f"{thing.color} {thing.kind}") for thing in scene.things]
        for group in scene.groups:
            if group.plural:
                around = union([scene.things[i].box for i in group.members])
                targets.append((around, f"{group.color} {group.kind.plural}"))
        return propose(scene, targets, self.config.proposals)


def _noun_end(caption: str, start: int, end: int) -> int:
    """The end of a noun phrase without its place, which is a separate phrase in Flickr30K Entities."""
    place = re.search(r" (?:on|in) the ", caption[start:end])
    return start + place.start() if place else end
