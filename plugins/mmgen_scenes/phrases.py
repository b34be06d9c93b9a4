"""Writes noun phrases about the things of a scene, and the words of places."""

from __future__ import annotations

from random import Random

from .world import Group, Scene

COUNTS = {2: "two", 3: "three"}


def indefinite_phrase(rng: Random, scene: Scene, group: Group, with_place: bool) -> str:
    """A phrase of a caption, with some properties of all members: "a small red ball on the left", "two birds"."""
    color = group.color if rng.random() < 0.7 else ""
    size = group.size if rng.random() < 0.35 else ""
    place = rng.choice(places(scene, group)) if with_place and rng.random() < 0.8 else ""
    return _join(COUNTS.get(len(group.members), "a"), size, color, noun(group), place)


def definite_phrase(group: Group, color: str = "", size: str = "", place: str = "") -> str:
    """A phrase of a question: "the red ball", "the birds in the sky"."""
    return _join("the", size, color, noun(group), place)


def varied_phrase(rng: Random, group: Group, *ways: str) -> str:
    """`definite_phrase` with one of these properties: "color", "size", or "" for the bare noun."""
    way = rng.choice(ways)
    return definite_phrase(group, **({way: getattr(group, way)} if way else {}))


def uncolored_phrase(rng: Random, scene: Scene, group: Group) -> str:
    """`definite_phrase` for texts about the colour: the bare noun, or with a size or a place."""
    place = rng.choice(places(scene, group))
    return definite_phrase(group, **rng.choice(({}, {"size": group.size}, {"place": place})))


def single_phrase(group: Group, color: str) -> str:
    """A phrase for a single thing: "a red ball"."""
    return _join("a", "", color, group.kind.name, "")


def noun(group: Group) -> str:
    """ "ball", or "balls" for several."""
    return group.kind.plural if group.plural else group.kind.name


def is_or_are(group: Group) -> str:
    return "are" if group.plural else "is"


def at_place(place: str) -> str:
    """ "in the sky", "on the left"; empty without a place."""
    return place and ("in the sky" if place == "sky" else f"on the {place}")


def places(scene: Scene, group: Group) -> list[str]:
    """The places that are true of every member."""
    sides = {thing.side for thing in scene.members(group)}
    return [group.place, *sides] if len(sides) == 1 and sides != {""} else [group.place]


def _join(article: str, size: str, color: str, noun: str, place: str) -> str:
    words = " ".join(filter(None, (size, color, noun, at_place(place))))
    return f"{'an' if article == 'a' and words[0] in 'aeiou' else article} {words}"
