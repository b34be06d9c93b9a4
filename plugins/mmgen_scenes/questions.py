"""Questions about scenes, in one table of forms: how each is worded, what fills its words, what answers it; reads them.

Any text can be read and answered, whoever wrote it. Where people may differ (`mmgen_scenes.relations`), a question is
in doubt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Literal

from . import answers
from .grammar import Mention, parse
from .phrases import at_place, definite_phrase, is_or_are, single_phrase, uncolored_phrase, varied_phrase
from .relations import RELATIONS, related
from .world import KINDS, Group, Scene, Thing, area

SLOTS = {  # slots of forms -> the symbols (`grammar.parse`) that may fill them
    "is_topic": "(?:is ONE|are MANY)",
    "topic": "(?:ONE|MANY)",
    "a_topic": "SOME",
    "topics": "KINDS",
    "partner": "(?:ONE|MANY)",
    "there": "(?:there|PLACE)",
    "relation": "(near|next to|above|below|to the left of|to the right of)",
    "size": "(bigger|smaller)",
}

Slots = dict[str, str]
Fill = Callable[[Random, Scene, Group, Group], Slots | None]


@dataclass(frozen=True)
class Form:
    """A form of question.

    words    its words and SLOTS
    answer   gives the right answers, see `mmgen_scenes.answers`
    fill     fills the slots of a question about a group, its topic, which may also name another group, its partner;
             gives None where the form does not apply. Every property that a question gives a thing is true
    several  whether a question may have several right answers
    """

    words: str
    answer: answers.Answer
    fill: Fill | None = None
    several: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf"{self.words.format_map(SLOTS)} \?")

    @property
    def asks_existence(self) -> bool:
        """Whether the first thing that a question names need not be there."""
        return "{a_topic}" in self.words


def _is(topic: Group, phrase: str) -> str:
    return f"{is_or_are(topic)} {phrase}"


def _fill_number(rng: Random, scene: Scene, topic: Group, partner: Group) -> Slots:
    color, place = rng.choice((("", ""), (topic.color, ""), ("", topic.place)))
    return {"topics": f"{color} {topic.kind.plural}".strip(), "there": at_place(place) or "there"}


def _fill_beside(rng: Random, scene: Scene, topic: Group, partner: Group) -> Slots | None:
    if partner.plural:
        return None
    is_topic = _is(topic, varied_phrase(rng, topic, "", "color"))
    return {"is_topic": is_topic, "relation": rng.choice(RELATIONS), "partner": definite_phrase(partner)}


def _fill_what_beside(rng: Random, scene: Scene, topic: Group, partner: Group) -> Slots | None:
    """Asks only where there is an answer."""
    thing = scene.things[topic.members[0]]
    others = [other for other in scene.things if other is not thing]
    relations = [relation for relation in RELATIONS if any(related(other, thing, relation) for other in others)]
    if not relations:
        return None
    return {"relation": rng.choice(relations).replace("near", "next to"), "topic": definite_phrase(topic)}


def _fill_there(rng: Random, scene: Scene, topic: Group, partner: Group) -> Slots | None:
    """Asks about a thing that the scene has, or, half of the time, has in another colour or not at all."""
    kind, color = topic.kind, topic.color
    if rng.random() < 0.5:
        kind = rng.choice([kind, rng.choice([*KINDS.values()])])
        color = rng.choice([other for other in kind.colors if other != topic.color])
    if sum((thing.kind, thing.color) == (kind.name, color) for thing in scene.things) > 1:
        return None  # people may say that there is not one
    return {"a_topic": single_phrase(Group(kind, color, "", "", ()), color)}


def _varied(*ways: str) -> Fill:
    """Fills {is_topic} with one of these properties, see `phrases.varied_phrase`."""
    return lambda rng, scene, topic, partner: {"is_topic": _is(topic, varied_phrase(rng, topic, *ways))}


COLORED = _varied("", "color")
FORMS = {
    "what color": Form(
        "what color {is_topic}",
        lambda things, named, word: {things[place].color for place in named[0]},
        lambda rng, scene, topic, partner: {"is_topic": _is(topic, uncolored_phrase(rng, scene, topic))},
    ),
    "how many": Form("how many {topics} are {there}", lambda things, named, word: {str(len(named[0]))}, _fill_number),
    "where": Form(
        "where {is_topic}",
        lambda things, named, word: {at_place(things[place].place) for place in named[0]},
        _varied("color", "size"),
    ),
    "which side": Form(
        "on which side {is_topic}",
        lambda things, named, word: {things[place].side or None for place in named[0]},
        COLORED,
    ),
    "is it bigger": Form(
        "{is_topic} {size} than {partner}",
        answers.is_larger,
        lambda rng, scene, topic, partner: {
            "is_topic": _is(topic, definite_phrase(topic)),
            "size": rng.choice(("bigger", "smaller")),
            "partner": definite_phrase(partner),
        },
    ),
    "is it beside": Form("{is_topic} {relation} {partner}", answers.is_beside, _fill_beside),
    "is there": Form(
        "is there {a_topic}", lambda things, named, word: {answers.yes_or_no(bool(named[0]))}, _fill_there
    ),
    "is there near": Form(
        "is there {a_topic} {relation} {partner}",
        answers.is_there_beside,
        lambda rng, scene, topic, partner: {
            "a_topic": single_phrase(topic, topic.color),
            "relation": "near",
            "partner": definite_phrase(partner),
        },
    ),
    "what is beside": Form("what is {relation} {topic}", answers.what_beside, _fill_what_beside, several=True),
    "what is it looking at": Form("what {is_topic} looking at", answers.looking_at, COLORED),
    "which way": Form("which way {is_topic} going", answers.going, COLORED),
}
COMPARING = {"is it bigger": 1, "is it beside": 1, "is there near": 1}
WEIGHTS: dict[str, dict[str, int]] = {  # how often forms are tried: for several things, for single ones by Kind.moves
    "many": {"how many": 8, "what color": 2, "where": 1, "is it bigger": 1},
    "looking": {"what is it looking at": 8, "what color": 1, "where": 1, **COMPARING, "what is beside": 2},
    "going": {"which way": 6, "what color": 2, "where": 1, **COMPARING, "what is beside": 2},
    "": {"what color": 5, "where": 2, **dict.fromkeys(COMPARING, 2), "what is beside": 3, "how many": 1},
}
MOST_OF_A_FORM = 2  # questions per scene that are filled in the same way


def write(rng: Random, scene: Scene, captioned: tuple[Group, Group], count: int) -> list[str]:
    """`count` different questions about a scene.

    Groups are chosen in proportion to their area, captioned or not; a captioned group is named together with the other
    captioned group only, so that about half of the questions name something that no caption mentions. The form depends
    on the group: several things are counted, animals look somewhere.
    """
    written: list[str] = []
    used: Counter[Fill | None] = Counter()
    areas = [sum(area(thing.box) for thing in scene.members(group)) for group in scene.groups]
    while len(written) < count:
        topic = rng.choices(scene.groups, areas)[0]
        partners = captioned if topic in captioned else scene.groups
        partner = rng.choice([group for group in partners if group != topic])
        weights = WEIGHTS["many" if topic.plural else topic.kind.moves]
        form = FORMS[rng.choices(tuple(weights), tuple(weights.values()))[0]]
        slots = form.fill(rng, scene, topic, partner) if form.fill and used[form.fill] < MOST_OF_A_FORM else None
        if slots and (text := f"{form.words.format_map(slots)}?") not in written:
            written.append(text)
            used[form.fill] += 1
    return written


@dataclass(frozen=True)
class Verdict:
    """What is true of a text that asks about a scene.

    form     the form of question, one of FORMS; empty if the text is not a question of the scenes' language
    answers  the right answers: one, or several where any of several things may be named
    reason   why there is none: "no question"; "not there", if the text names or presupposes what the scene does not
             have; "in doubt", if people may differ
    """

    form: str
    answers: frozenset[str] = frozenset()
    reason: Literal["", "no question", "not there", "in doubt"] = ""


def find_answers(question: str, things: Sequence[Mapping[str, Any]], alone: bool = False) -> Verdict:
    """The right answers to a text about a scene. `things`: the fact of this name of an example of drawn scenes.
    `alone`: several answers, even possible ones, are in doubt."""
    name, word, mentions = _read(question)
    if not name:
        return Verdict("", reason="no question")
    form = FORMS[name]
    presupposed = mentions[1:] if form.asks_existence else mentions
    if any(mention.kind not in KINDS for mention in mentions) or not all(m.holds(things) for m in presupposed):
        return Verdict(name, reason="not there")
    named = [[place for place, thing in enumerate(things) if mention.fits(thing)] for mention in mentions]
    found = {*form.answer([Thing.of_facts(thing) for thing in things], named, word)}
    if not found:
        return Verdict(name, reason="not there")
    certain = frozenset(answer for answer in found if answer is not None)
    if not certain or (len(found) > 1 and (alone or not form.several)):
        return Verdict(name, reason="in doubt")
    return Verdict(name, certain)


def is_well_formed(question: str) -> bool:
    """Whether a text is a question of one of the forms, with nouns that agree in number."""
    return _read(question)[0] != ""


def _read(question: str) -> tuple[str, str, tuple[Mention, ...]]:
    """The form of a question, the word that its form leaves open, and what it names; "" for another text."""
    symbols, mentions = parse(question)
    for name, form in FORMS.items():
        if match := form.pattern.fullmatch(symbols):
            return name, "".join(match.groups()), mentions
    return "", "", mentions
