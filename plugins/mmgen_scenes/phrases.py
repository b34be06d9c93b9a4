"""Noun phrases about the things of a scene, words of places, and the relations that captions and questions name.

Every phrase has the mention it was made from, which tests compare with what `mmgen_scenes.grammar` reads in the words.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .grammar import Mention
from .world import Group, Scene, Thing, center

COUNTS = {2: "two", 3: "three"}
NEAR = 0.36  # greatest distance between the centres of two near things
APART = 0.15  # least horizontal distance of a thing to the left of another


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: its words, and the properties that they give a thing."""

    text: str
    mention: Mention


@dataclass(frozen=True)
class Text:
    """A caption or a question. `groups`: positions in Scene.groups of the groups that the phrases name."""

    text: str
    phrases: tuple[Phrase, ...]
    groups: tuple[int, ...]


def indefinite_phrase(rng: Random, scene: Scene, group: Group, with_place: bool) -> Phrase:
    """A phrase of a caption, with some properties of all members: "a small red ball on the left", "two birds"."""
    color = group.color if rng.random() < 0.7 else ""
    size = group.size if rng.random() < 0.35 else ""
    place = rng.choice(places(scene, group)) if with_place and rng.random() < 0.8 else ""
    count = len(group.members)
    return _build_phrase(group, COUNTS.get(count, "a"), count, color, size, place)


def definite_phrase(group: Group, color: str = "", size: str = "", place: str = "") -> Phrase:
    """A phrase of a question: "the red ball", "the birds in the sky"."""
    return _build_phrase(group, "the", 2 if group.plural else 1, color, size, place)


def varied_phrase(rng: Random, group: Group, *ways: str) -> Phrase:
    """`definite_phrase` with one of these properties: "color", "size", or "" for the bare noun."""
    way = rng.choice(ways)
    return definite_phrase(group, **({way: getattr(group, way)} if way else {}))


def uncolored_phrase(rng: Random, scene: Scene, group: Group) -> Phrase:
    """`definite_phrase` for texts about the colour: the bare noun, or with a size or a place."""
    place = rng.choice(places(scene, group))
    return definite_phrase(group, **rng.choice(({}, {"size": group.size}, {"place": place})))


def single_phrase(group: Group, color: str) -> Phrase:
    """A phrase for a single thing: "a red ball"."""
    return _build_phrase(group, "a", 1, color, "", "")


def is_or_are(group: Group) -> str:
    return "are" if group.plural else "is"


def at_place(place: str) -> str:
    """ "in the sky", "on the left"; empty without a place."""
    return place and ("in the sky" if place == "sky" else f"on the {place}")


def places(scene: Scene, group: Group) -> list[str]:
    """The places that are true of every member."""
    sides = {scene.things[i].side for i in group.members}
    return [group.place, *sides] if len(sides) == 1 and sides != {""} else [group.place]


def relations(a: Thing, b: Thing) -> list[str]:
    """The relations that `a` has to `b`."""
    (ax, ay), (bx, by) = center(a), center(b)
    holds = {
        "near": (ax - bx) ** 2 + (ay - by) ** 2 < NEAR**2,
        "to the left of": bx - ax > APART,
        "to the right of": ax - bx > APART,
    }
    return [relation for relation, true in holds.items() if true]


def _build_phrase(group: Group, article: str, least: int, color: str, size: str, place: str) -> Phrase:
    nouns = " ".join(filter(None, (size, color, group.kind.plural if group.plural else group.kind.name)))
    if article == "a" and nouns[0] in "aeiou":
        article = "an"
    mention = Mention(
        kind=group.kind.name,
        plural=group.plural,
        least=least,
        colors=(color,) if color else (),
        sizes=(size,) if size else (),
        places=(place,) if place else (),
    )
    return Phrase(f"{article} {nouns} {at_place(place)}".strip(), mention)
