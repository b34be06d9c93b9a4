"""The right answers to forms of questions, from the things of a scene.

Each function gets the things, for each noun phrase of the question the positions of the things that fit it, and the
word that the form leaves open ("bigger", "to the left of"). It gives the right answers; None is an answer that people
may differ about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

from .relations import FRONTAL, RELATIONS, Things, ahead, larger, on_the_way, related
from .world import KINDS

Named = Sequence[Sequence[int]]
Found = Iterable[str | None]
Answer = Callable[[Things, Named, str], Found]


def is_larger(things: Things, named: Named, word: str) -> Found:
    first_is_larger = larger(*([things[place] for place in places] for places in named))
    return {yes_or_no(None if first_is_larger is None else first_is_larger == (word == "bigger"))}


def is_beside(things: Things, named: Named, word: str) -> Found:
    return {yes_or_no(_related(things, a, b, word)) for a, b in product(*named)}


def is_there_beside(things: Things, named: Named, word: str) -> Found:
    """Yes if one of the things has the relation; "no" only if none may have it."""
    holds = {_related(things, a, b, word) for a, b in product(*named)}
    return {yes_or_no(True if True in holds else None if None in holds else False)}


def what_beside(things: Things, named: Named, word: str) -> Found:
    """Each thing that has the relation to all that are named is a right answer."""
    for place in sorted({*range(len(things))}.difference(named[0])):
        holds = {_related(things, place, b, word) for b in named[0]}
        if holds != {False}:
            yield things[place].kind if holds == {True} else None


def looking_at(things: Things, named: Named, word: str) -> Found:
    for place in named[0]:
        origin = things[place]
        others = [thing for i, thing in enumerate(things) if i != place]
        if KINDS[origin.kind].moves == "looking" and any(on_the_way(origin, thing) is not False for thing in others):
            seen = None if origin.kind in FRONTAL else ahead(things, place)
            yield None if seen is None else things[seen].kind


def going(things: Things, named: Named, word: str) -> Found:
    for thing in (things[place] for place in named[0]):
        if KINDS[thing.kind].moves == "going":
            yield None if thing.kind in FRONTAL else thing.facing


def _related(things: Things, a: int, b: int, relation: str) -> bool | None:
    plain = relation.replace("next to", "near")
    return related(things[a], things[b], plain) if plain in RELATIONS else None


def yes_or_no(holds: bool | None) -> str | None:
    return None if holds is None else "yes" if holds else "no"
