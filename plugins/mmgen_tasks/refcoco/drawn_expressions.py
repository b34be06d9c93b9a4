"""Writes the expressions of drawn RefCOCO+, which fit one thing of a scene beyond doubt.

An expression is `[small|big] [colour] kind [near the kind]`. It is as short as possible, and never says left or right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from mmgen_scenes.relations import related
from mmgen_scenes.world import Scene

SENTENCES = (  # around an expression
    "{}",
    "the {}",
    "where is the {}?",
    "we see the {}",
    "look at the {} over there",
    "the picture shows {a} {}",
    "there is {a} {} in the picture",
    "somewhere in this picture there is {a} {}",
)
LOOK_ALIKE = 8  # how many times likelier a thing is chosen that is not the only one of its kind


@dataclass(frozen=True)
class Expression:
    """An expression for a thing. `near`: a kind of which the scene has exactly one."""

    kind: str
    color: str = ""
    size: str = ""
    near: str = ""

    @property
    def text(self) -> str:
        return " ".join(filter(None, (self.size, self.color, self.kind, self.near and f"near the {self.near}")))

    @property
    def words(self) -> int:
        return len(self.text.split())

    def fits(self, scene: Scene, thing: int) -> bool | None:
        """Whether the expression is true of a thing; None where people may differ."""
        target = scene.things[thing]
        if self.kind != target.kind or self.color not in ("", target.color) or self.size not in ("", target.size):
            return False
        if not self.near:
            return True
        (neighbour,) = (candidate for candidate in scene.things if candidate.kind == self.near)
        return related(target, neighbour, "near")


def write(rng: Random, scene: Scene, count: int) -> list[tuple[int, str]]:
    """At most `count` things of a scene (positions in Scene.things), each with an expression for it alone."""
    kinds = [thing.kind for thing in scene.things]
    weights = [LOOK_ALIKE if kinds.count(kind) > 1 else 1 for kind in kinds]
    written: list[tuple[int, str]] = []
    while len(written) < count and any(weights):
        (thing,) = rng.choices(range(len(weights)), weights)
        weights[thing] = 0
        if (expression := shortest(rng, scene, thing)) is not None:
            written.append((thing, expression.text))
    return written


def in_sentence(rng: Random, expression: str) -> str:
    """The expression in one of `SENTENCES`: "there is a red dog in the picture"."""
    article = "an" if expression[0] in "aeiou" else "a"
    return rng.choice(SENTENCES).format(expression, a=article)


def shortest(rng: Random, scene: Scene, thing: int) -> Expression | None:
    """One of the shortest expressions that fit a thing and, beyond doubt, no other thing; None without one."""
    rest = [position for position in range(len(scene.things)) if position != thing]
    unambiguous = [
        expression
        for expression in _candidate_expressions(scene, thing)
        if expression.fits(scene, thing) and all(expression.fits(scene, position) is False for position in rest)
    ]
    length = min((expression.words for expression in unambiguous), default=0)
    return rng.choice([expression for expression in unambiguous if expression.words == length]) if unambiguous else None


def _candidate_expressions(scene: Scene, thing: int) -> Iterator[Expression]:
    """All expressions that might be true of a thing."""
    target, kinds = scene.things[thing], [item.kind for item in scene.things]
    for near in ("", *(kind for kind in dict.fromkeys(kinds) if kind != target.kind and kinds.count(kind) == 1)):
        for color in ("", target.color):
            for size in ("", target.size):
                yield Expression(target.kind, color, size, near)
