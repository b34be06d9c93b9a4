"""Writes the questions of drawn VQA, with one answer each, a function per form; answers of a form are balanced.

So knowing which answers are common helps little without the picture.

A form asks about a group of things; some forms also name another group. A form returns the question, its answer and,
where the words give away something about the answer, a cue. It returns None where it does not apply, or where people
may differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from mmgen_scenes.phrases import at_place, definite_phrase, is_or_are, single_phrase, uncolored_phrase, varied_phrase
from mmgen_scenes.relations import RELATIONS, ahead, closest, larger, moves, only_related, related
from mmgen_scenes.world import COLORS, GROUNDS, KINDS, SIDES, SIZES, Group, Kind, Scene, Thing, sample

NUMBERS = {1: "1", 2: "2", 3: "3"}
ON = {ground: at_place(ground) for ground in GROUNDS}  # "where" questions are about things on the ground
ANSWERS = ("yes", "no", *NUMBERS.values(), *COLORS, *SIDES, *ON.values(), *KINDS)


MOST_OF_A_FORM = 2  # questions of one form per scene
TOPICS = 6  # topics tried for a form before another form is drawn
PATIENCE = 100  # forms drawn per question before MOST_OF_A_FORM no longer holds
PILOT_SCENES, PILOT_ROUNDS = 500, 4  # used to estimate how common answers are
# forms whose answers are not equally common by themselves
FLATTENED = ("what color", "how many", "is it beside", "is there near", "is there")


@dataclass(frozen=True)
class Question:
    """A question and its answer. `cue`: what the words alone give away about the answer."""

    form: str
    text: str
    answer: str
    cue: str = ""


def write(rng: Random, scene: Scene, count: int, rates: Mapping[tuple[str, str, str], float]) -> list[Question]:
    """`count` different questions. `rates`: the result of `acceptance`."""
    weights = [weight for weight, _ in FORMS.values()]
    written: dict[str, Question] = {}  # by text without colours and sizes, so that no question is asked twice
    used: Counter[str] = Counter()
    for tries in range(PATIENCE * count):
        (form,) = rng.choices(tuple(FORMS), weights)
        if used[form] == MOST_OF_A_FORM and tries < PATIENCE:
            continue
        question = _write_question(rng, scene, form)
        if question is None or (plain := _without_adjectives(question.text)) in written:
            continue
        if rng.random() < rates.get((form, question.cue, question.answer), 1.0):
            written[plain] = question
            used[form] += 1
            if len(written) == count:
                break
    return list(written.values())


@lru_cache(maxsize=16)
def acceptance(fewest: int, most: int) -> dict[tuple[str, str, str], float]:
    """(form, cue, answer) -> the probability of keeping such a question, so that all answers to questions of one form
    and cue are equally common. Estimated on scenes of `fewest` to `most` things that no data set shows."""
    pilots = [sample(Random(f"pilot/{i}"), str(i), fewest, most) for i in range(PILOT_SCENES)]
    rates: dict[tuple[str, str, str], float] = {}
    offered: dict[tuple[str, str], dict[str, float]] = {}  # how often answers would occur if all questions were kept
    for turn in range(PILOT_ROUNDS):
        if turn == 1:  # in the first round common answers hide the rare ones
            offered.clear()
        for scene in pilots:
            for question in write(Random(f"pilot/{scene.id}/{turn}"), scene, 4, rates):
                if question.form in FLATTENED:
                    key = (question.form, question.cue, question.answer)
                    shares = offered.setdefault(key[:2], {})
                    shares[question.answer] = shares.get(question.answer, 0.0) + 1 / rates.get(key, 1.0)
        for form_and_cue, shares in offered.items():
            rarest = min(shares.values())
            rates |= {(*form_and_cue, answer): rarest / share for answer, share in shares.items()}
    return rates


def _write_question(rng: Random, scene: Scene, form: str) -> Question | None:
    for _ in range(TOPICS):
        topic, partner = rng.sample(scene.groups, 2)
        parts = FORMS[form][1](rng, scene, topic, partner)
        if parts is not None:
            return Question(form, *parts)
    return None


def _ask_color(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...]:
    return f"what color {is_or_are(group)} {uncolored_phrase(rng, scene, group)}?", group.color


def _ask_number(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    if group.kind.name == "sun":  # there is only one sun
        return None
    color, place = rng.choice((("", ""), (group.color, ""), ("", group.place)))
    plural_name = f"{color} {group.kind.plural}".strip()
    return f"how many {plural_name} are {at_place(place) or 'there'}?", NUMBERS[len(group.members)]


def _ask_where(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    """Asks about things on the ground only; the place of birds and boats is obvious."""
    if group.place not in ON:
        return None
    return f"where {is_or_are(group)} {varied_phrase(rng, group, 'color', 'size')}?", ON[group.place]


def _ask_side(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    sides = {scene.things[i].side for i in group.members}
    if len(sides) > 1 or sides == {""}:
        return None
    return f"on which side {is_or_are(group)} {varied_phrase(rng, group, '', 'color')}?", *sides


def _ask_larger(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    is_larger = larger(scene.members(group), scene.members(partner))
    if is_larger is None:
        return None
    word = rng.choice(("bigger", "smaller"))
    answer = _yes_or_no(is_larger is (word == "bigger"))
    return f"{is_or_are(group)} {definite_phrase(group)} {word} than {definite_phrase(partner)}?", answer


def _ask_is_beside(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    if group.plural or partner.plural:
        return None
    relation = rng.choice(RELATIONS)
    holds = related(_first_thing(scene, group), _first_thing(scene, partner), relation)
    if holds is None:
        return None
    a, b = varied_phrase(rng, group, "", "color"), definite_phrase(partner)
    return (
        f"is {a} {relation} {b}?",
        _yes_or_no(holds),
        _near_or_far(group, partner) if relation == "near" else "aside",
    )


def _ask_is_there(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    """Asks about a thing that the scene has, has in another colour, or does not have."""
    named, luck = rng.random() < 0.7, rng.random()
    if luck < 0.5:
        if group.plural:
            return None
        return (
            f"is there {single_phrase(group, group.color if named else '')}?",
            "yes",
            "of a color" if named else "",
        )
    kind, color = group.kind, rng.choice([color for color in group.kind.colors if color != group.color])
    if not named or luck < 0.7:
        kind, color = _pick_absent(rng, scene)
    thing = Group(kind, color, "", "", (0,))
    return f"is there {single_phrase(thing, color if named else '')}?", "no", "of a color" if named else ""


def _ask_is_there_near(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    """Asks about things that the scene has, has in another colour, or does not have."""
    b = definite_phrase(partner)
    if (luck := rng.random()) < 0.15:
        group = Group(*_pick_absent(rng, scene), "", "", ())
        return f"is there {single_phrase(group, group.color)} near {b}?", "no", _near_or_far(group, partner)
    if group.plural or partner.plural:
        return None
    if luck < 0.4:
        color = rng.choice([color for color in group.kind.colors if color != group.color])
        return f"is there {single_phrase(group, color)} near {b}?", "no", _near_or_far(group, partner)
    near = related(_first_thing(scene, group), _first_thing(scene, partner), "near")
    if near is None:
        return None
    return (
        f"is there {single_phrase(group, group.color)} near {b}?",
        _yes_or_no(near),
        _near_or_far(group, partner),
    )


def _ask_what_beside(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    relation = rng.choice(RELATIONS)
    thing = None
    if not group.plural:
        single = group.members[0]
        thing = closest(scene.things, single) if relation == "near" else only_related(scene.things, single, relation)
    words = relation.replace("near", "next to")
    return _ask_kind(scene, f"what is {words} {definite_phrase(group)}?", thing)


def _ask_looking(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    thing = ahead(scene.things, group.members[0]) if moves(group) == "looking" else None
    phrase = varied_phrase(rng, group, "", "color")
    return _ask_kind(scene, f"what is {phrase} looking at?", thing)


def _ask_going(rng: Random, scene: Scene, group: Group, partner: Group) -> tuple[str, ...] | None:
    if moves(group) != "going":
        return None
    phrase = varied_phrase(rng, group, "", "color")
    return f"which way is {phrase} going?", _first_thing(scene, group).facing


def _ask_kind(scene: Scene, text: str, position: int | None) -> tuple[str, ...] | None:
    """A question whose answer is a kind; None without a thing, or where several things are of its kind."""
    if position is None or sum(thing.kind == scene.things[position].kind for thing in scene.things) > 1:
        return None
    return text, scene.things[position].kind


def _pick_absent(rng: Random, scene: Scene) -> tuple[Kind, str]:
    """A kind that is not in the scene, and a possible colour of it."""
    kind = rng.choice([kind for kind in KINDS.values() if kind not in (group.kind for group in scene.groups)])
    return kind, rng.choice(kind.colors)


def _near_or_far(group: Group, partner: Group) -> str:
    """The cue of a question about nearness: things in the sky are seldom near things on the ground."""
    return "of a place" if group.kind.zone == partner.kind.zone else "apart"


def _without_adjectives(text: str) -> str:
    return " ".join(word for word in text.split() if word not in COLORS and word not in SIZES)


def _first_thing(scene: Scene, group: Group) -> Thing:
    return scene.things[group.members[0]]


def _yes_or_no(holds: bool) -> str:
    return "yes" if holds else "no"


# How often each form is tried. Forms with rare answers are rejected more often.
FORMS: dict[str, tuple[float, Callable[..., tuple[str, ...] | None]]] = {
    "what color": (5, _ask_color),
    "how many": (10, _ask_number),
    "where": (1, _ask_where),
    "which side": (1, _ask_side),
    "is it bigger": (1, _ask_larger),
    "is it beside": (2, _ask_is_beside),
    "is there": (4, _ask_is_there),
    "is there near": (5, _ask_is_there_near),
    "what is beside": (3, _ask_what_beside),
    "what is it looking at": (14, _ask_looking),
    "which way": (2, _ask_going),
}
