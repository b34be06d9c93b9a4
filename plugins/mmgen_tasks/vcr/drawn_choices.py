"""Writes questions with four answers, and four rationales for the right one: the drawn version of VCR.

Wrong answers are what is right in other scenes, said of this scene's things; wrong rationales are what would be right
if its things looked as they do elsewhere. Who has not seen the picture can hardly tell them from the right ones.
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

Values = dict[str, tuple[str, Sequence[str]]]  # a word of a rationale -> the right one, and all that it might be


@dataclass(frozen=True)
class Form:
    """A question about the thing {x}, which the thing {y} answers. Functions take a scene and positions in its things.

    right     every y that is beyond doubt
    wrong     of an x, a y and another thing: whether that is beyond doubt no answer
    values    of an x and a y, the other words of the rationale
    by_place  whether the answer is likely where x is: in the sky, say
    """

    question: str
    answer: str
    rationale: str
    right: Callable[[Scene, int], Sequence[int]]
    wrong: Callable[[Scene, int, int, int], bool]
    values: Callable[[Scene, int, int], Values]
    by_place: bool = False


def write(rng: Random, scene: Scene, count: int, called: Sequence[str], first: str) -> list[Item]:
    """`count` questions of different forms, one of the form `first`; none where the scene has not as many. `called`:
    what each thing is called in texts."""
    found = {first: list(_items(rng, scene, FORMS[first]))}
    if not found[first]:
        return []
    found |= {form: list(_items(rng, scene, FORMS[form])) for form in FORMS if form != first}
    others = [form for form in found if found[form] and form != first]
    if len(others) < count - 1:
        return []
    forms = [first, *rng.sample(others, count - 1)]
    return [
        _item(rng, scene, form, rng.choice(found[form]), called)._replace(id=f"{scene.id}-{number}")
        for number, form in enumerate(forms)
    ]


def _items(rng: Random, scene: Scene, form: Form) -> Iterator[tuple[int, int, list[int]]]:
    """Every x and y that a question can be about, and three other things that might be answered.

    x, y and the others are of different kinds. Where the answer is likely where x is, at least two of the others are
    where the answer is."""
    kinds = [thing.kind for thing in scene.things]
    alone = [i for i, kind in enumerate(kinds) if kinds.count(kind) == 1]
    for x in alone:
        for y in form.right(scene, x):
            if y not in alone or _count(form.values(scene, x, y)) < CHOICES:
                continue
            every = [z for z in rng.sample(range(len(kinds)), len(kinds)) if z not in (x, y)]
            wrong = list({kinds[z]: z for z in every if form.wrong(scene, x, y, z)}.values())
            if form.by_place:
                wrong.sort(key=lambda z: scene.things[z].place != scene.things[y].place)
                if len(wrong) > 1 and scene.things[wrong[1]].place != scene.things[y].place:
                    continue
            if len(wrong) >= CHOICES - 1:
                yield x, y, wrong[: CHOICES - 1]


def _item(rng: Random, scene: Scene, form: str, chosen: tuple[int, int, list[int]], called: Sequence[str]) -> Item:
    x, y, others = chosen
    words, values = FORMS[form], FORMS[form].values(scene, x, y)
    right = {name: value for name, (value, _) in values.items()}
    wrong = rng.sample([each for each in _combinations(values) if each != right], CHOICES - 1)
    answers = [tell(words.answer, {"x": x, "y": z}, called) for z in (y, *others)]
    rationales = [tell(words.rationale.format_map(_Kept(each)), {"x": x, "y": y}, called) for each in (right, *wrong)]
    shuffled, answer = _shuffled(rng, answers)
    reasons, rationale = _shuffled(rng, rationales)
    kinds = tuple(thing.kind for thing in scene.things)
    question, facts = tell(words.question, {"x": x}, called), {"form": form}
    return Item(scene.id, scene.id, kinds, question, shuffled, reasons, answer, rationale, facts)


def _shuffled(rng: Random, texts: Sequence[Text]) -> tuple[tuple[Text, ...], int]:
    """The texts in another order, and the place of the first of them, which is the right one."""
    places = rng.sample(range(CHOICES), CHOICES)
    return tuple(texts[place] for place in places), places.index(0)


def _combinations(values: Values) -> list[dict[str, str]]:
    return [dict(zip(values, each, strict=True)) for each in product(*(options for _, options in values.values()))]


def _count(values: Values) -> int:
    """How many combinations there are."""
    return prod(len(options) for _, options in values.values())


class _Kept(dict):
    """Leaves the names of things where they are."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


def tell(template: str, things: Mapping[str, int], called: Sequence[str]) -> Text:
    """ "what is {x} looking at?" of things as they are called: "what is the dog looking at?". Mentions leave articles
    out."""
    text, mentions = "", []
    for place, piece in enumerate(re.split(r"\{(\w)\}", template)):
        if place % 2:
            article, _, name = called[things[piece]].rpartition(" ")
            text += f"{article} " if article else ""
            mentions.append((len(text), len(text) + len(name), (things[piece],)))
            text += name
        else:
            text += piece
    return Text(text, tuple(mentions))


def _colors(scene: Scene, thing: int) -> tuple[str, Sequence[str]]:
    own = scene.things[thing]
    return own.color, KINDS[own.kind].colors


def _ahead(does: str) -> dict[str, Any]:
    """The functions of a form about what looks somewhere, or goes somewhere."""

    def right(scene: Scene, x: int) -> Sequence[int]:
        (group,) = (each for each in scene.groups if x in each.members)
        found = ahead(scene, x) if moves(group) == does else None
        return () if found is None else (found,)

    return {
        "right": right,
        "wrong": lambda scene, x, y, z: (
            on_the_way(scene.things[x], scene.things[z]) is False or _twice_as_far(scene, x, y, z)
        ),
        "values": lambda scene, x, y: {"way": (scene.things[x].facing, SIDES), "color": _colors(scene, y)},
        "by_place": True,
    }


def _next_to(scene: Scene, x: int) -> Sequence[int]:
    found = closest(scene, x)
    return () if found is None else (found,)


def _twice_as_far(scene: Scene, x: int, y: int, z: int) -> bool:
    """Whether z is at least twice as far from x as y is, or far in any case."""
    own = scene.things[x]
    return distance(own, scene.things[z]) > min(2 * distance(own, scene.things[y]), FAR)


def _alike(attribute: str) -> Callable[[Scene, int], Sequence[int]]:
    """All things that have this in common with x."""

    def right(scene: Scene, x: int) -> Sequence[int]:
        own = getattr(scene.things[x], attribute)
        return [y for y, thing in enumerate(scene.things) if y != x and own and getattr(thing, attribute) == own]

    return right


def _shared_colors(scene: Scene, x: int, y: int) -> Values:
    color, colors = _colors(scene, x)
    return {"color": (color, [each for each in colors if each in KINDS[scene.things[y].kind].colors])}


FIRST = {"looking": 1, "going": 1, "next to": 2, "color": 2, "side": 2}  # how often a scene is about a form
WAY = "{x} faces {way}, and {y}, which is {color}, is the first thing that way."
FORMS = {
    "looking": Form("what is {x} looking at?", "{x} is looking at {y}.", WAY, **_ahead("looking")),
    "going": Form("what is {x} going towards?", "{x} is going towards {y}.", WAY, **_ahead("going")),
    "next to": Form(
        "what is next to {x}?",
        "{y} is next to {x}.",
        "{y}, which is {color}, is closer to {x}, which is {other}, than anything else.",
        right=_next_to,
        wrong=_twice_as_far,
        values=lambda scene, x, y: {"color": _colors(scene, y), "other": _colors(scene, x)},
        by_place=True,
    ),
    "color": Form(
        "what has the same color as {x}?",
        "{y} has the same color as {x}.",
        "{y} is {color}, and so is {x}.",
        right=_alike("color"),
        wrong=lambda scene, x, y, z: (
            scene.things[z].color != scene.things[x].color
            and _count(_shared_colors(scene, x, z)) >= CHOICES  # it might have been
        ),
        values=_shared_colors,
    ),
    "side": Form(
        "what is on the same side as {x}?",
        "{y} is on the same side as {x}.",
        "{y}, which is {color}, is on the {way}, and so is {x}.",
        right=_alike("side"),
        wrong=lambda scene, x, y, z: {scene.things[x].side, scene.things[z].side} == {*SIDES},
        values=lambda scene, x, y: {"way": (scene.things[x].side, SIDES), "color": _colors(scene, y)},
    ),
}
