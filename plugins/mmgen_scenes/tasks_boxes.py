"""The data sets `scene_expressions` (RefCOCO+, drawn) and `scene_phrases` (Flickr30K Entities, drawn)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import NamedTuple

from mmgen_vision.boxes import Box, union

from mmgen.examples import Example

from . import SceneExpressions, ScenePhrases, captions
from .detector import propose
from .drawn import DrawnDataset, SceneSet, plain_scene, things
from .relations import related
from .world import SORT, Scene, sample, sample_unlike_looks

LOOK_ALIKE = 8  # how many times likelier a thing is chosen that is not the only one of its kind


class DrawnExpressions(DrawnDataset):
    """Examples of a `SceneExpressions` config, one per expression.

    inputs   "image": the scene's name; "expression"
    labels   "box": the box of the only thing that the expression fits
    facts    image, the scene's things, and "thing": the position of the thing that the expression refers to
    """

    name = "drawn scenes with expressions"
    config: SceneExpressions

    def make(self, split: str, i: int) -> SceneSet:
        config, rng = self.config, Random(f"{self.config.seed}/{split}/{i}/expressions")
        name = f"expressions{config.proposals or ''}-{split}-{i:05d}"
        scene = sample(rng, name, *config.things, sample_unlike_looks(rng, config.same_kind))
        known = things(scene)
        examples = tuple(
            Example(
                f"{scene.id}-{place}",
                {"image": scene.id, "expression": text},
                facts={"image": scene.id, "things": known, "thing": thing},
                labels={"box": scene.things[thing].box},
            )
            for place, (thing, text) in enumerate(write(rng, scene, config.expressions))
        )
        return (scene,), examples

    def boxes(self, scene: Scene) -> tuple[list[Box], list[str]]:
        return propose(scene, [(t.box, f"{t.color} {t.kind}") for t in scene.things], self.config.proposals)


class Expression(NamedTuple):
    """An expression, `[small|big] [colour] kind [near the kind]`. `near`: a kind of which the scene has exactly one."""

    kind: str
    color: str
    size: str
    near: str

    @property
    def text(self) -> str:
        return " ".join(filter(None, (self.size, self.color, self.kind, self.near and f"near the {self.near}")))

    def fits(self, scene: Scene, thing: int) -> bool | None:
        """Whether the expression is true of a thing; None where people may differ."""
        target = scene.things[thing]
        if self.kind != target.kind or self.color not in ("", target.color) or self.size not in ("", target.size):
            return False
        neighbours = [candidate for candidate in scene.things if candidate.kind == self.near]
        return related(target, neighbours[0], "near") if neighbours else True


def write(rng: Random, scene: Scene, count: int) -> list[tuple[int, str]]:
    """At most `count` things of a scene (positions in Scene.things), each with an expression for it alone."""
    kinds = [thing.kind for thing in scene.things]
    weights = [LOOK_ALIKE if kinds.count(kind) > 1 else 1 for kind in kinds]
    written: list[tuple[int, str]] = []
    while len(written) < count and any(weights):
        (thing,) = rng.choices(range(len(weights)), weights)
        weights[thing] = 0
        if text := shortest(rng, scene, thing):
            written.append((thing, text))
    return written


def shortest(rng: Random, scene: Scene, thing: int) -> str:
    """One of the shortest expressions that fit a thing and, beyond doubt, no other thing; "" without one."""
    rest = [position for position in range(len(scene.things)) if position != thing]
    texts = [
        expression.text
        for expression in _candidates(scene, thing)
        if expression.fits(scene, thing) and all(expression.fits(scene, position) is False for position in rest)
    ]
    length = min((len(text.split()) for text in texts), default=0)
    return rng.choice([text for text in texts if len(text.split()) == length]) if texts else ""


def _candidates(scene: Scene, thing: int) -> Iterator[Expression]:
    """All expressions that might be true of a thing."""
    target, kinds = scene.things[thing], [item.kind for item in scene.things]
    for near in ("", *(kind for kind in dict.fromkeys(kinds) if kind != target.kind and kinds.count(kind) == 1)):
        for color in ("", target.color):
            for size in ("", target.size):
                yield Expression(target.kind, color, size, near)


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
            inputs, name = {"image": scene.id, "caption": caption.text}, f"{scene.id}-{number}"
            if split != config.test_split:
                examples.append(Example(name, inputs, (), shared, {"phrases": tuple(phrases)}))
                continue
            for place, (phrase, group) in enumerate(zip(phrases, caption.groups, strict=True)):
                facts = {**shared, "type": SORT[group.kind.name]}
                examples.append(Example(f"{name}-{place}", inputs, (), facts, {"phrases": (phrase,)}))
        return (scene,), tuple(examples)

    def boxes(self, scene: Scene) -> tuple[list[Box], list[str]]:
        """Boxes near things, and near the box around all things of a group."""
        targets = [(thing.box, f"{thing.color} {thing.kind}") for thing in scene.things]
        for group in scene.groups:
            if group.plural:
                around = union([thing.box for thing in scene.members(group)])
                targets.append((around, f"{group.color} {group.kind.plural}"))
        return propose(scene, targets, self.config.proposals)


def _noun_end(caption: str, start: int, end: int) -> int:
    """The end of a noun phrase without its place, which is a separate phrase in Flickr30K Entities."""
    place = re.search(r" (?:on|in) the ", caption[start:end])
    return start + place.start() if place else end
