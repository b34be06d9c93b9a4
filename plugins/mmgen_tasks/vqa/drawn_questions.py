"""Writes questions that have one answer, with it: the drawn version of VQA. Every form of question is balanced, so that
who has not seen the picture gains little from knowing which answers are common.

A form asks about a group of things; some forms also name another one. A form gives the question, its answer and, where
the words give something of it away, a cue. It gives None where it does not apply, or where people may differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from mmgen_scenes.phrases import at, be, definite, described, some, uncolored
from mmgen_scenes.relations import RELATIONS, ahead, closest, larger, moves, only, related
from mmgen_scenes.world import COLORS, GROUNDS, KINDS, SIDES, SIZES, SORT, SORTS, Group, Kind, Scene, Thing, sample

NUMBERS = {1: "1", 2: "2", 3: "3"}
ON = {ground: at(ground) for ground in GROUNDS}  # what is asked where it is stands on the ground
ANSWERS = ("yes", "no", *NUMBERS.values(), *COLORS, *SIDES, *ON.values(), *KINDS)

PEOPLE = 10  # who answer a question
ALIKE = {  # colours that are taken for each other
    "red": ("orange", "purple"),
    "orange": ("red", "yellow"),
    "yellow": ("orange", "white"),
    "green": ("blue", "yellow"),
    "blue": ("purple", "green"),
    "purple": ("blue", "red"),
    "white": ("yellow",),
    "black": ("brown",),
    "brown": ("black", "orange"),
}
OTHERS = {  # an answer -> those that somebody gives who did not look well
    **{
        "yes": ("no",),
        "no": ("yes",),
        "left": ("right",),
        "right": ("left",),
        "1": ("2",),
        "2": ("1", "3"),
        "3": ("2",),
    },
    **ALIKE,
    **{place: tuple(other for other in ON.values() if other != place) for place in ON.values()},
    **{kind: tuple(other for other in SORTS[SORT[kind]] if other != kind) for kind in KINDS},
}

MOST_OF_A_FORM = 2  # questions a scene
TOPICS = 6  # tried for a form that is drawn, before another is drawn
PATIENCE = 100  # forms drawn for a question, before more than that of a form are let through
PILOT_SCENES, PILOT_ROUNDS = 500, 4  # from which it is learnt how common answers are
# the answers of other forms are about as common
FLATTENED = ("what color", "how many", "is it beside", "is there near", "is there")


@dataclass(frozen=True)
class Question:
    """A question and its answer. `cue`: what its words alone give away of the answer."""

    form: str
    text: str
    answer: str
    cue: str = ""


def write(rng: Random, scene: Scene, count: int, kept: Mapping[tuple[str, str, str], float]) -> list[Question]:
    """`count` different questions. `kept`: what `acceptance` gives."""
    weights = [weight for weight, _ in FORMS.values()]
    written: dict[str, Question] = {}  # by its words without colours and sizes: nobody asks twice
    used: Counter[str] = Counter()
    for tries in range(PATIENCE * count):
        (form,) = rng.choices(tuple(FORMS), weights)
        if used[form] == MOST_OF_A_FORM and tries < PATIENCE:
            continue
        question = _ask(rng, scene, form)
        if question is None or (plain := _plain(question.text)) in written:
            continue
        if rng.random() < kept.get((form, question.cue, question.answer), 1.0):
            written[plain] = question
            used[form] += 1
            if len(written) == count:
                break
    return list(written.values())


def people(rng: Random, question: Question) -> tuple[str, ...]:
    """What ten people answer: nine agree, and one nearly does. (None says that a dog looks at the dog.)"""
    given = [question.answer] * PEOPLE
    named = question.text[:-1].split()
    given[rng.randrange(PEOPLE)] = rng.choice([other for other in OTHERS[question.answer] if other not in named])
    return tuple(given)


def answer_type(answer: str) -> str:
    """As VQA has them."""
    return "yes/no" if answer in ("yes", "no") else "number" if answer in NUMBERS.values() else "other"


@lru_cache(maxsize=16)
def acceptance(fewest: int, most: int) -> dict[tuple[str, str, str], float]:
    """(form, cue, answer) -> with which probability such a question is kept, so that all answers to questions of that
    form and cue are about as common. Learnt from scenes of `fewest` to `most` things that no data set shows."""
    pilots = [sample(Random(f"pilot/{i}"), str(i), fewest, most) for i in range(PILOT_SCENES)]
    kept: dict[tuple[str, str, str], float] = {}
    offered: dict[tuple[str, str], dict[str, float]] = {}  # how often answers would have been given, had all been kept
    for turn in range(PILOT_ROUNDS):
        if turn == 1:  # with so many common answers the first round tells little of the rare ones
            offered.clear()
        for scene in pilots:
            for question in write(Random(f"pilot/{scene.id}/{turn}"), scene, 4, kept):
                if question.form in FLATTENED:
                    own = (question.form, question.cue, question.answer)
                    shares = offered.setdefault(own[:2], {})
                    shares[question.answer] = shares.get(question.answer, 0.0) + 1 / kept.get(own, 1.0)
        for about, shares in offered.items():
            rarest = min(shares.values())
            kept |= {(*about, answer): rarest / share for answer, share in shares.items()}
    return kept


def _ask(rng: Random, scene: Scene, form: str) -> Question | None:
    for _ in range(TOPICS):
        topic, partner = rng.sample(scene.groups, 2)
        asked = FORMS[form][1](rng, scene, topic, partner)
        if asked is not None:
            return Question(form, *asked)
    return None


def _color(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...]:
    return f"what color {be(group)} {uncolored(rng, scene, group).text}?", group.color


def _number(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    if group.kind.name == "sun":  # there is one
        return None
    color, place = rng.choice((("", ""), (group.color, ""), ("", group.place)))
    named = f"{color} {group.kind.plural}".strip()
    return f"how many {named} are {at(place) or 'there'}?", NUMBERS[len(group.members)]


def _where(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    """Asked of what stands on the ground; of birds and boats one knows."""
    if group.place not in ON:
        return None
    return f"where {be(group)} {described(rng, group, 'color', 'size').text}?", ON[group.place]


def _side(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    sides = {scene.things[i].side for i in group.members}
    if len(sides) > 1 or sides == {""}:
        return None
    return f"on which side {be(group)} {described(rng, group, '', 'color').text}?", *sides


def _larger(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    is_larger = larger(scene, group, other)
    if is_larger is None:
        return None
    word = rng.choice(("bigger", "smaller"))
    answer = _yes(is_larger is (word == "bigger"))
    return f"{be(group)} {definite(group).text} {word} than {definite(other).text}?", answer


def _is_beside(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    if group.plural or other.plural:
        return None
    relation = rng.choice(RELATIONS)
    holds = related(_thing(scene, group), _thing(scene, other), relation)
    if holds is None:
        return None
    a, b = described(rng, group, "", "color"), definite(other)
    return (
        f"is {a.text} {relation} {b.text}?",
        _yes(holds),
        _near_or_far(group, other) if relation == "near" else "aside",
    )


def _is_there(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    """Of one thing that is there, is there in another colour, or is not there at all."""
    named, luck = rng.random() < 0.7, rng.random()
    if luck < 0.5:
        if group.plural:
            return None
        return f"is there {some(group, group.color if named else '').text}?", "yes", "of a color" if named else ""
    kind, color = group.kind, rng.choice([color for color in group.kind.colors if color != group.color])
    if not named or luck < 0.7:
        kind, color = _absent(rng, scene)
    thing = Group(kind, color, "", "", (0,))
    return f"is there {some(thing, color if named else '').text}?", "no", "of a color" if named else ""


def _is_there_near(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    """Of something that is there, is there in another colour, or is not there at all."""
    b = definite(other).text
    if (luck := rng.random()) < 0.15:
        group = Group(*_absent(rng, scene), "", "", ())
        return f"is there {some(group, group.color).text} near {b}?", "no", _near_or_far(group, other)
    if group.plural or other.plural:
        return None
    if luck < 0.4:
        color = rng.choice([color for color in group.kind.colors if color != group.color])
        return f"is there {some(group, color).text} near {b}?", "no", _near_or_far(group, other)
    near = related(_thing(scene, group), _thing(scene, other), "near")
    if near is None:
        return None
    return f"is there {some(group, group.color).text} near {b}?", _yes(near), _near_or_far(group, other)


def _what_beside(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    relation = rng.choice(RELATIONS)
    found = None
    if not group.plural:
        own = group.members[0]
        found = closest(scene, own) if relation == "near" else only(scene, own, relation)
    words = relation.replace("near", "next to")
    return _names(scene, f"what is {words} {definite(group).text}?", found)


def _looking(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    found = ahead(scene, group.members[0]) if moves(group) == "looking" else None
    phrase = described(rng, group, "", "color")
    return _names(scene, f"what is {phrase.text} looking at?", found)


def _going(rng: Random, scene: Scene, group: Group, other: Group) -> tuple[str, ...] | None:
    if moves(group) != "going":
        return None
    phrase = described(rng, group, "", "color")
    return f"which way is {phrase.text} going?", _thing(scene, group).facing


def _names(scene: Scene, text: str, found: int | None) -> tuple[str, ...] | None:
    """A question that a kind answers: asked where one thing is meant, and there is one of that kind."""
    if found is None or sum(thing.kind == scene.things[found].kind for thing in scene.things) > 1:
        return None
    return text, scene.things[found].kind


def _absent(rng: Random, scene: Scene) -> tuple[Kind, str]:
    """A kind that the scene has none of, and a colour that such things have."""
    kind = rng.choice([kind for kind in KINDS.values() if kind not in (each.kind for each in scene.groups)])
    return kind, rng.choice(kind.colors)


def _near_or_far(group: Group, other: Group) -> str:
    """What is in the sky is seldom near what is on the ground: the kinds alone tell that."""
    return "of a place" if group.kind.zone == other.kind.zone else "apart"


def _plain(text: str) -> str:
    return " ".join(word for word in text.split() if word not in COLORS and word not in SIZES)


def _thing(scene: Scene, group: Group) -> Thing:
    return scene.things[group.members[0]]


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


# How often each form is tried. Of those with rare answers more are refused.
FORMS: dict[str, tuple[float, Callable[..., tuple[str, ...] | None]]] = {
    "what color": (5, _color),
    "how many": (10, _number),
    "where": (1, _where),
    "which side": (1, _side),
    "is it bigger": (1, _larger),
    "is it beside": (2, _is_beside),
    "is there": (4, _is_there),
    "is there near": (5, _is_there_near),
    "what is beside": (3, _what_beside),
    "what is it looking at": (14, _looking),
    "which way": (2, _going),
}
