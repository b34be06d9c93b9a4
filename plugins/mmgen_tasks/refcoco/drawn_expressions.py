"""Writes expressions that fit one thing of a scene beyond doubt: the drawn version of RefCOCO+.

An expression is `[small|big] [colour] kind [near the kind]`. It is as short as it can be, and never says left or right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from mmgen_scenes.relations import related
from mmgen_scenes.world import Scene

LOOK_ALIKE = 8  # times as often as another thing, a thing is asked for that has others of its kind


@dataclass(frozen=True)
class Expression:
    """What is said of a thing. `near`: a kind of which the scene has one."""

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
        """Whether it can be said of a thing; None where people may differ."""
        own = scene.things[thing]
        if self.kind != own.kind or self.color not in ("", own.color) or self.size not in ("", own.size):
            return False
        if not self.near:
            return True
        (other,) = (each for each in scene.things if each.kind == self.near)
        return related(own, other, "near")


def write(rng: Random, scene: Scene, count: int) -> list[tuple[int, str]]:
    """At most `count` things of a scene (positions in Scene.things), each with an expression for it alone."""
    kinds = [thing.kind for thing in scene.things]
    wanted = [LOOK_ALIKE if kinds.count(kind) > 1 else 1 for kind in kinds]
    written: list[tuple[int, str]] = []
    while len(written) < count and any(wanted):
        (thing,) = rng.choices(range(len(wanted)), wanted)
        wanted[thing] = 0
        if (found := shortest(rng, scene, thing)) is not None:
            written.append((thing, found.text))
    return written


def shortest(rng: Random, scene: Scene, thing: int) -> Expression | None:
    """One of the shortest expressions that fit a thing and, beyond doubt, no other; None where there is none."""
    others = [other for other in range(len(scene.things)) if other != thing]
    good = [
        each
        for each in _expressions(scene, thing)
        if each.fits(scene, thing) and all(each.fits(scene, other) is False for other in others)
    ]
    least = min((each.words for each in good), default=0)
    return rng.choice([each for each in good if each.words == least]) if good else None


def _expressions(scene: Scene, thing: int) -> Iterator[Expression]:
    """All that might be said of a thing."""
    own, kinds = scene.things[thing], [each.kind for each in scene.things]
    for near in ("", *(kind for kind in dict.fromkeys(kinds) if kind != own.kind and kinds.count(kind) == 1)):
        for color in ("", own.color):
            for size in ("", own.size):
                yield Expression(own.kind, color, size, near)
