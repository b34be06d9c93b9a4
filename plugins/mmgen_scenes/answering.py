"""Answers questions about drawn scenes from their words and the scene's facts, or says why a question has no answer.

Any text can be answered, whoever wrote it. Answers are in the words of the data set `scene_answers`. Where people may
differ (`mmgen_scenes.relations`), a question is in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from .grammar import RELATION, parse
from .phrases import at_place
from .relations import FRONTAL, RELATIONS, ahead, larger, on_the_way, related
from .world import KINDS, Group, Scene, Thing

Reason = Literal["", "no question", "not there", "in doubt"]
Found = Iterable[str | None]  # right answers; None is one that people may differ about


@dataclass(frozen=True)
class Verdict:
    """What is true of a text that asks about a scene.

    form     the form of question, as in `scene_answers`; empty if the text is not a question of the scenes' language
    answers  the right answers: one, or several where any of several things may be named
    reason   why there is none: "no question"; "not there", if the text names or presupposes what the scene does not
             have; "in doubt", if people may differ
    """

    form: str
    answers: frozenset[str] = frozenset()
    reason: Reason = ""

    @property
    def answerable(self) -> bool | None:
        """None in doubt."""
        return None if self.reason == "in doubt" else not self.reason


def find_answers(question: str, things: Sequence[Mapping[str, Any]]) -> Verdict:
    """The right answers to a text about a scene. `things`: the fact of this name of an example of drawn scenes."""
    symbols, mentions = parse(question)
    matches = ((form, re.fullmatch(pattern, symbols)) for form, (pattern, _) in FORMS.items())
    form, match = next(((form, match) for form, match in matches if match), ("", None))
    if match is None:
        return Verdict("", reason="no question")
    presupposed = mentions[1:] if form in ("is there", "is there near") else mentions
    if any(mention.kind not in KINDS for mention in mentions) or not all(m.holds(things) for m in presupposed):
        return Verdict(form, reason="not there")
    scene = Scene("", "", 0.0, False, 0, tuple(_thing_of_facts(thing) for thing in things), ())
    named = [[place for place, thing in enumerate(things) if mention.fits(thing)] for mention in mentions]
    answers = {*FORMS[form][1](scene, named, match.groupdict().get("word", ""))}
    certain = frozenset(answer for answer in answers if answer is not None)
    if not answers:
        return Verdict(form, reason="not there")
    if not certain or (form != "what is beside" and len(answers) > 1):
        return Verdict(form, reason="in doubt")
    return Verdict(form, certain)


def _thing_of_facts(facts: Mapping[str, Any]) -> Thing:
    return Thing(**{name: facts[name] for name in Thing.__dataclass_fields__})


def _color(scene: Scene, named: list[list[int]], word: str) -> Found:
    return {scene.things[place].color for place in named[0]}


def _where(scene: Scene, named: list[list[int]], word: str) -> Found:
    return {at_place(scene.things[place].place) for place in named[0]}


def _side(scene: Scene, named: list[list[int]], word: str) -> Found:
    return {scene.things[place].side or None for place in named[0]}


def _number(scene: Scene, named: list[list[int]], word: str) -> Found:
    return {str(len(named[0]))}


def _larger(scene: Scene, named: list[list[int]], word: str) -> Found:
    for places in named:
        if len({scene.things[place].size for place in places}) > 1:
            return {None}
    first, second = (_group_of_things(scene, places) for places in named)
    is_larger = larger(scene, first, second)
    return {_yes_or_no(None if is_larger is None else is_larger == (word == "bigger"))}


def _group_of_things(scene: Scene, places: list[int]) -> Group:
    thing = scene.things[places[0]]
    return Group(KINDS[thing.kind], thing.color, thing.size, thing.place, tuple(places))


def _is_beside(scene: Scene, named: list[list[int]], word: str) -> Found:
    return {_yes_or_no(_related(scene, a, b, word)) for a, b in product(*named)}


def _is_there(scene: Scene, named: list[list[int]], word: str) -> Found:
    return {_yes_or_no(bool(named[0]))}


def _is_there_near(scene: Scene, named: list[list[int]], word: str) -> Found:
    """Yes if one of the things has the relation; "no" only if none may have it."""
    relations = {_related(scene, a, b, word) for a, b in product(*named)}
    return {_yes_or_no(True if True in relations else None if None in relations else False)}


def _what_beside(scene: Scene, named: list[list[int]], word: str) -> Found:
    """Each thing that has the relation to all that are named is a right answer."""
    for place, thing in enumerate(scene.things):
        relations = {_related(scene, place, b, word) for b in named[0]} if place not in named[0] else {False}
        if relations != {False}:
            yield thing.kind if relations == {True} else None


def _looking_at(scene: Scene, named: list[list[int]], word: str) -> Found:
    for place in named[0]:
        origin = scene.things[place]
        rest = [thing for i, thing in enumerate(scene.things) if i != place]
        if KINDS[origin.kind].moves == "looking" and any(on_the_way(origin, thing) is not False for thing in rest):
            seen = None if origin.kind in FRONTAL else ahead(scene, place)
            yield None if seen is None else scene.things[seen].kind


def _going(scene: Scene, named: list[list[int]], word: str) -> Found:
    for place in named[0]:
        thing = scene.things[place]
        if KINDS[thing.kind].moves == "going":
            yield None if thing.kind in FRONTAL else thing.facing


def _related(scene: Scene, a: int, b: int, relation: str) -> bool | None:
    plain = relation.replace("next to", "near")
    return related(scene.things[a], scene.things[b], plain) if plain in RELATIONS else None


def _yes_or_no(holds: bool | None) -> str | None:
    return None if holds is None else "yes" if holds else "no"


IS, BESIDE = r"(?:is ONE|are MANY)", rf"(?P<word>{RELATION})"
FORMS: dict[str, tuple[str, Callable[[Scene, list[list[int]], str], Found]]] = {  # form -> its symbols, its answers
    "what color": (rf"what color {IS}", _color),
    "how many": (r"how many KINDS are (?:there|PLACE)", _number),
    "where": (rf"where {IS}", _where),
    "which side": (rf"on which side {IS}", _side),
    "is it bigger": (rf"{IS} (?P<word>bigger|smaller) than (?:ONE|MANY)", _larger),
    "is it beside": (rf"{IS} {BESIDE} (?:ONE|MANY)", _is_beside),
    "is there": (r"is there SOME", _is_there),
    "is there near": (rf"is there SOME {BESIDE} (?:ONE|MANY)", _is_there_near),
    "what is beside": (rf"what is {BESIDE} (?:ONE|MANY)", _what_beside),
    "what is it looking at": (rf"what {IS} looking at", _looking_at),
    "which way": (rf"which way {IS} going", _going),
}
