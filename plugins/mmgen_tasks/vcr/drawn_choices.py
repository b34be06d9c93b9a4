"""Writes the items of drawn VCR: questions, their four answers, and four rationales for the right one.

Wrong answers are right answers of other scenes, applied to this scene's things; wrong rationales would be right if the
things looked as they do in other scenes. Without the picture they are hard to distinguish from the right choices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from random import Random
from typing import Any

from mmgen_scenes.relations import FAR, ahead, closest, distance, moves, on_the_way
from mmgen_scenes.world import KINDS, SIDES, Scene

from .items import CHOICES, Item, Text

Values = dict[str, tuple[str, Sequence[str]]]  # a word of a rationale -> the right value, and all possible values


@dataclass(frozen=True)
class Form:
    """A question about the thing {x}, with the thing {y} as answer. Functions take a scene and positions in its things.

    right     every y that is a right answer beyond doubt
    wrong     (x, y, another thing) -> whether the other thing is a wrong answer beyond doubt
    values    (x, y) -> the other words of the rationale
    by_place  whether the answer is likely to be where x is, such as in the sky
    """

    question: str
    answer: str
    rationale: str
    right: Callable[[Scene, int], Sequence[int]]
    wrong: Callable[[Scene, int, int, int], bool]
    values: Callable[[Scene, int, int], Values]
    by_place: bool = False


def write(rng: Random, scene: Scene, count: int, names: Sequence[str], first: str) -> list[Item]:
    """`count` questions of different forms, one of them of the form `first`; none if the scene has fewer. `names`: the
    name of each thing in texts."""
    candidates = {first: list(_write_items(rng, scene, FORMS[first]))}
    if not candidates[first]:
        return []
    candidates |= {form: list(_write_items(rng, scene, FORMS[form])) for form in FORMS if form != first}
    available_forms = [form for form in candidates if candidates[form] and form != first]
    if len(available_forms) < count - 1:
        return []
    forms = [first, *rng.sample(available_forms, count - 1)]
    return _with_ids(scene, [_write_item(rng, scene, form, rng.choice(candidates[form]), names) for form in forms])


def write_others(rng: Random, scene: Scene, count: int, names: Sequence[str], forms: Sequence[str]) -> list[Item]:
    """At most `count` different questions of these forms."""
    by_question: dict[tuple[str, int], list[tuple[int, int, list[int]]]] = {}
    for form in forms:
        for positions in _write_items(rng, scene, FORMS[form]):
            by_question.setdefault((form, positions[0]), []).append(positions)
    questions = rng.sample(sorted(by_question), min(count, len(by_question)))
    items = [_write_item(rng, scene, form, rng.choice(by_question[form, x]), names) for form, x in questions]
    return _with_ids(scene, items)


def _with_ids(scene: Scene, items: Sequence[Item]) -> list[Item]:
    """The items of a scene, numbered after the scene's name."""
    return [item._replace(id=f"{scene.id}-{number}") for number, item in enumerate(items)]


def _write_items(rng: Random, scene: Scene, form: Form) -> Iterator[tuple[int, int, list[int]]]:
    """Every x and y that a question can be about, and three other things as wrong answers.

    x, y and the wrong answers are of different kinds. In a form with `by_place`, at least two of the wrong answers are
    where the right answer is."""
    kinds = [thing.kind for thing in scene.things]
    alone = [i for i, kind in enumerate(kinds) if kinds.count(kind) == 1]
    for x in alone:
        for y in form.right(scene, x):
            if y not in alone or _count_combinations(form.values(scene, x, y)) < CHOICES:
                continue
            remaining = [z for z in rng.sample(range(len(kinds)), len(kinds)) if z not in (x, y)]
            wrong = list({kinds[z]: z for z in remaining if form.wrong(scene, x, y, z)}.values())
            if form.by_place:
                wrong.sort(key=lambda z: scene.things[z].place != scene.things[y].place)
                if len(wrong) > 1 and scene.things[wrong[1]].place != scene.things[y].place:
                    continue
            if len(wrong) >= CHOICES - 1:
                yield x, y, wrong[: CHOICES - 1]


def _write_item(
    rng: Random, scene: Scene, form: str, positions: tuple[int, int, list[int]], names: Sequence[str]
) -> Item:
    x, y, wrong_things = positions
    words, values = FORMS[form], FORMS[form].values(scene, x, y)
    right = {name: value for name, (value, _) in values.items()}
    wrong = rng.sample([combination for combination in _combinations(values) if combination != right], CHOICES - 1)
    answers = [fill_template(words.answer, {"x": x, "y": z}, names) for z in (y, *wrong_things)]
    rationales = [
        fill_template(words.rationale.format_map(_KeepMissing(combination)), {"x": x, "y": y}, names)
        for combination in (right, *wrong)
    ]
    shuffled, answer = _shuffle_texts(rng, answers)
    reasons, rationale = _shuffle_texts(rng, rationales)
    kinds = tuple(thing.kind for thing in scene.things)
    question, facts = fill_template(words.question, {"x": x}, names), {"form": form}
    return Item(scene.id, scene.id, kinds, question, shuffled, reasons, answer, rationale, facts)


def _shuffle_texts(rng: Random, texts: Sequence[Text]) -> tuple[tuple[Text, ...], int]:
    """The texts in random order, and the new position of the first text, which is the right one."""
    places = rng.sample(range(CHOICES), CHOICES)
    return tuple(texts[place] for place in places), places.index(0)


def _combinations(values: Values) -> list[dict[str, str]]:
    return [
        dict(zip(values, combination, strict=True))
        for combination in product(*(options for _, options in values.values()))
    ]


def _count_combinations(values: Values) -> int:
    """The number of combinations."""
    return prod(len(options) for _, options in values.values())


class _KeepMissing(dict):
    """Leaves the placeholders of things unchanged."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


def fill_template(template: str, things: Mapping[str, int], names: Sequence[str]) -> Text:
    """A template with the names of things filled in: "what is {x} looking at?" -> "what is the dog looking at?".
    Mentions leave out articles."""
    text, mentions = "", []
    for place, piece in enumerate(re.split(r"\{(\w)\}", template)):
        if place % 2:
            article, _, name = names[things[piece]].rpartition(" ")
            text += f"{article} " if article else ""
            mentions.append((len(text), len(text) + len(name), (things[piece],)))
            text += name
        else:
            text += piece
    return Text(text, tuple(mentions))


def _color_and_choices(scene: Scene, thing: int) -> tuple[str, Sequence[str]]:
    target = scene.things[thing]
    return target.color, KINDS[target.kind].colors


def _ahead_functions(movement: str) -> dict[str, Any]:
    """The functions of a form about a thing that looks, or goes, somewhere."""

    def right(scene: Scene, x: int) -> Sequence[int]:
        (group,) = (group for group in scene.groups if x in group.members)
        thing = ahead(scene.things, x) if moves(group) == movement else None
        return () if thing is None else (thing,)

    return {
        "right": right,
        "wrong": lambda scene, x, y, z: (
            on_the_way(scene.things[x], scene.things[z]) is False or _twice_as_far(scene, x, y, z)
        ),
        "values": lambda scene, x, y: {"way": (scene.things[x].facing, SIDES), "color": _color_and_choices(scene, y)},
        "by_place": True,
    }


def _next_to(scene: Scene, x: int) -> Sequence[int]:
    thing = closest(scene.things, x)
    return () if thing is None else (thing,)


def _twice_as_far(scene: Scene, x: int, y: int, z: int) -> bool:
    """Whether z is at least twice as far from x as y is, or far in any case."""
    target = scene.things[x]
    return distance(target, scene.things[z]) > min(2 * distance(target, scene.things[y]), FAR)


def _same_attribute(attribute: str) -> Callable[[Scene, int], Sequence[int]]:
    """All things that share this attribute with x."""

    def right(scene: Scene, x: int) -> Sequence[int]:
        value = getattr(scene.things[x], attribute)
        return [y for y, thing in enumerate(scene.things) if y != x and value and getattr(thing, attribute) == value]

    return right


def _shared_colors(scene: Scene, x: int, y: int) -> Values:
    color, colors = _color_and_choices(scene, x)
    return {"color": (color, [candidate for candidate in colors if candidate in KINDS[scene.things[y].kind].colors])}


FIRST = {"looking": 1, "going": 1, "next to": 2, "color": 2, "side": 2}  # how often each form comes first
WAY = "{x} faces {way}, and {y}, which is {color}, is the first thing that way."
FORMS = {
    "looking": Form("what is {x} looking at?", "{x} is looking at {y}.", WAY, **_ahead_functions("looking")),
    "going": Form("what is {x} going towards?", "{x} is going towards {y}.", WAY, **_ahead_functions("going")),
    "next to": Form(
        "what is next to {x}?",
        "{y} is next to {x}.",
        "{y}, which is {color}, is closer to {x}, which is {other}, than anything else.",
        right=_next_to,
        wrong=_twice_as_far,
        values=lambda scene, x, y: {"color": _color_and_choices(scene, y), "other": _color_and_choices(scene, x)},
        by_place=True,
    ),
    "color": Form(
        "what has the same color as {x}?",
        "{y} has the same color as {x}.",
        "{y} is {color}, and so is {x}.",
        right=_same_attribute("color"),
        wrong=lambda scene, x, y, z: (
            scene.things[z].color != scene.things[x].color
            and _count_combinations(_shared_colors(scene, x, z)) >= CHOICES  # the color might have been the same
        ),
        values=_shared_colors,
    ),
    "side": Form(
        "what is on the same side as {x}?",
        "{y} is on the same side as {x}.",
        "{y}, which is {color}, is on the {way}, and so is {x}.",
        right=_same_attribute("side"),
        wrong=lambda scene, x, y, z: {scene.things[x].side, scene.things[z].side} == {*SIDES},
        values=lambda scene, x, y: {"way": (scene.things[x].side, SIDES), "color": _color_and_choices(scene, y)},
    ),
}
