"""Noun phrases about the things of a scene, and what is true between two: what captions and questions are made of.

Every phrase comes with the mention it was made from, so that `mmgen_scenes.grammar`, which reads words alone, can be
tested against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .grammar import Mention
from .world import Group, Scene, Thing

COUNTS = {2: "two", 3: "three"}
NEAR = 0.36  # greatest distance of the centres of two things that are near each other
APART = 0.15  # least distance across of two things of which one is left of the other


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: its words, and what they give of the thing."""

    text: str
    mention: Mention


@dataclass(frozen=True)
class Text:
    """A caption or a question. `groups`: positions in Scene.groups of what the phrases name."""

    text: str
    phrases: tuple[Phrase, ...]
    groups: tuple[int, ...]


def indefinite(rng: Random, scene: Scene, group: Group, placed: bool) -> Phrase:
    """ "a small red ball on the left", "two birds": as captions have it, telling more or less, of all members."""
    color = group.color if rng.random() < 0.7 else ""
    size = group.size if rng.random() < 0.35 else ""
    place = rng.choice(places(scene, group)) if placed and rng.random() < 0.8 else ""
    count = len(group.members)
    return _phrase(group, COUNTS.get(count, "a"), count, color, size, place)


def definite(group: Group, color: str = "", size: str = "", place: str = "") -> Phrase:
    """ "the red ball", "the birds in the sky": as questions have it."""
    return _phrase(group, "the", 2 if group.plural else 1, color, size, place)


def described(rng: Random, group: Group, *ways: str) -> Phrase:
    """`definite` in one of these ways: "" is the bare noun, "color" and "size" add what they name."""
    way = rng.choice(ways)
    return definite(group, **({way: getattr(group, way)} if way else {}))


def uncolored(rng: Random, scene: Scene, group: Group) -> Phrase:
    """`definite` for what is about the colour: the bare noun, or with a size or a place."""
    place = rng.choice(places(scene, group))
    return definite(group, **rng.choice(({}, {"size": group.size}, {"place": place})))


def some(group: Group, color: str) -> Phrase:
    """ "a red ball", of a single thing."""
    return _phrase(group, "a", 1, color, "", "")


def be(group: Group) -> str:
    return "are" if group.plural else "is"


def at(place: str) -> str:
    """ "in the sky", "on the left"; nothing for no place."""
    return place and ("in the sky" if place == "sky" else f"on the {place}")


def places(scene: Scene, group: Group) -> list[str]:
    """The places that are true of every member."""
    sides = {scene.things[i].side for i in group.members}
    return [group.place, *sides] if len(sides) == 1 and sides != {""} else [group.place]


def relations(a: Thing, b: Thing) -> list[str]:
    """What is true of a towards b."""
    (ax, ay), (bx, by) = center(a), center(b)
    holds = {
        "near": (ax - bx) ** 2 + (ay - by) ** 2 < NEAR**2,
        "to the left of": bx - ax > APART,
        "to the right of": ax - bx > APART,
    }
    return [relation for relation, true in holds.items() if true]


def _phrase(group: Group, article: str, least: int, color: str, size: str, place: str) -> Phrase:
    named = " ".join(filter(None, (size, color, group.kind.plural if group.plural else group.kind.name)))
    if article == "a" and named[0] in "aeiou":
        article = "an"
    mention = Mention(
        kind=group.kind.name,
        plural=group.plural,
        least=least,
        colors=(color,) if color else (),
        sizes=(size,) if size else (),
        places=(place,) if place else (),
    )
    return Phrase(f"{article} {named} {at(place)}".strip(), mention)


def center(thing: Thing) -> tuple[float, float]:
    """x and y of the middle of its box."""
    x0, y0, x1, y1 = thing.box
    return (x0 + x1) / 2, (y0 + y1) / 2
