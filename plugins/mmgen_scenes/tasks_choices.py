"""The data set `scene_choices`, VCR drawn: questions about scenes, their four answers, and four rationales.

Wrong answers are right answers of other scenes, applied to this scene's things; wrong rationales would be right if the
things looked as they do in other scenes. Without the picture they are hard to distinguish from the right choices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from mmgen_vision.items import CHOICES, Item, Text

from . import SceneChoices
from .configs import QUESTIONS
from .drawn import DrawnDataset, SceneSet, things
from .relations import FAR, FRONTAL, ahead, closest, distance, on_the_way
from .world import KINDS, SIDES, Scene, sample

Values = dict[str, tuple[str, Sequence[str]]]  # a word of a rationale -> the right value, and all possible values
Positions = tuple[int, int, list[int]]  # x, y and three wrong answers, in Scene.things


class DrawnChoices(DrawnDataset):
    """Examples of a `SceneChoices` config: choices of an answer (ITEM-answer), or of a rationale given the question and
    its answer (ITEM-rationale; ITEM-rationale-K given answer K, whether it is right or not).

    inputs   "image": the scene's name; "question"; "question_mentions": `All` of (first character, end, things)
    labels   "choices": four texts; "choice_mentions": their mentions; "choice": which choice is right, from 0, absent
             in ITEM-rationale-K; "objects": the kind of every thing
    facts    asks: "answer" or "rationale"; item and group; image, the scene's things, and the form of question
    """

    name = "drawn scenes with choices"
    config: SceneChoices

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"objects": tuple(KINDS)}

    def make(self, split: str, i: int) -> SceneSet:
        config, rng = self.config, Random(f"{self.config.seed}/{split}/{i}/choices")
        items: list[Item] = []
        while len(items) < config.num_questions:
            scene = sample(rng, f"choices-{split}-{i:05d}", *config.things)
            items = write(rng, scene, config.num_questions, QUESTIONS)
        if config.forms != QUESTIONS:  # of the same pictures, which may have fewer questions of these forms
            items = write(rng, scene, config.num_questions, config.forms)
        return (scene,), tuple(example for item in items for example in item.examples(config.subtask))


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

    def positions(self, rng: Random, scene: Scene) -> Iterator[Positions]:
        """Every x and y that a question can be about, and three other things as wrong answers.

        x, y and the wrong answers are of different kinds. In a form with `by_place`, at least two of the wrong answers
        are where the right answer is."""
        kinds = [thing.kind for thing in scene.things]
        alone = [i for i, kind in enumerate(kinds) if kinds.count(kind) == 1]
        for x in alone:
            for y in self.right(scene, x):
                if y not in alone or len(_combinations(self.values(scene, x, y))) < CHOICES:
                    continue
                remaining = [z for z in rng.sample(range(len(kinds)), len(kinds)) if z not in (x, y)]
                wrong = list({kinds[z]: z for z in remaining if self.wrong(scene, x, y, z)}.values())
                near = [z for z in wrong if scene.things[z].place == scene.things[y].place]
                if self.by_place:
                    wrong = [*near, *(z for z in wrong if z not in near)]
                if len(wrong) >= CHOICES - 1 and (not self.by_place or len(near) >= CHOICES - 2):
                    yield x, y, wrong[: CHOICES - 1]


def write(rng: Random, scene: Scene, count: int, forms: Sequence[str]) -> list[Item]:
    """At most `count` different questions of these forms, of different forms where the scene has them."""
    questions: dict[str, dict[int, list[Positions]]] = {form: {} for form in forms}
    for form in forms:
        for positions in FORMS[form].positions(rng, scene):
            questions[form].setdefault(positions[0], []).append(positions)
    items: list[Item] = []
    while len(items) < count and any(questions.values()):
        unused = [form for form in questions if questions[form] and all(form != item.facts["form"] for item in items)]
        form = rng.choice(unused or [form for form in questions if questions[form]])
        about = questions[form].pop(rng.choice([*questions[form]]))
        items.append(_write_item(rng, scene, len(items), form, rng.choice(about)))
    return items


def _write_item(rng: Random, scene: Scene, number: int, form: str, positions: Positions) -> Item:
    x, y, wrong_things = positions
    words, values = FORMS[form], FORMS[form].values(scene, x, y)
    right = {name: value for name, (value, _) in values.items()}
    wrong = rng.sample([combination for combination in _combinations(values) if combination != right], CHOICES - 1)
    kinds = tuple(thing.kind for thing in scene.things)
    question = fill_template(words.question, {"x": x}, kinds)
    answers, answer = _shuffle(rng, [fill_template(words.answer, {"x": x, "y": z}, kinds) for z in (y, *wrong_things)])
    reasons = [fill_template(words.rationale, {"x": x, "y": y, **filled}, kinds) for filled in (right, *wrong)]
    rationales, rationale = _shuffle(rng, reasons)
    name, facts = f"{scene.id}-{number}", {"form": form, "things": things(scene)}
    return Item(name, scene.id, kinds, question, answers, rationales, answer, rationale, facts)


def _shuffle(rng: Random, texts: Sequence[Text]) -> tuple[tuple[Text, ...], int]:
    """The texts in random order, and the new position of the first text, which is the right one."""
    places = rng.sample(range(CHOICES), CHOICES)
    return tuple(texts[place] for place in places), places.index(0)


def _combinations(values: Values) -> list[dict[str, str]]:
    return [dict(zip(values, words, strict=True)) for words in product(*(words for _, words in values.values()))]


def fill_template(template: str, values: Mapping[str, int | str], kinds: Sequence[str]) -> Text:
    """A template with words and things filled in: "what is {x} looking at?" -> "what is the dog looking at?". Mentions
    leave out articles."""
    text, mentions = "", []
    for place, piece in enumerate(re.split(r"\{(\w+)\}", template)):
        value = values[piece] if place % 2 else piece
        if isinstance(value, int):
            text += "the "
            mentions.append((len(text), len(text) + len(kinds[value]), (value,)))
            value = kinds[value]
        text += value
    return Text(text, tuple(mentions))


def _color(scene: Scene, thing: int) -> tuple[str, Sequence[str]]:
    target = scene.things[thing]
    return target.color, KINDS[target.kind].colors


def _ahead_functions(movement: str) -> dict[str, Any]:
    """The functions of a form about a thing that looks, or goes, somewhere."""

    def right(scene: Scene, x: int) -> Sequence[int]:
        kind = KINDS[scene.things[x].kind]
        thing = ahead(scene.things, x) if kind.moves == movement and kind.name not in FRONTAL else None
        return () if thing is None else (thing,)

    return {
        "right": right,
        "wrong": lambda scene, x, y, z: (
            on_the_way(scene.things[x], scene.things[z]) is False or _twice_as_far(scene, x, y, z)
        ),
        "values": lambda scene, x, y: {"way": (scene.things[x].facing, SIDES), "color": _color(scene, y)},
        "by_place": True,
    }


def _next_to(scene: Scene, x: int) -> Sequence[int]:
    thing = closest(scene.things, x)
    return () if thing is None else (thing,)


def _twice_as_far(scene: Scene, x: int, y: int, z: int) -> bool:
    """Whether z is at least twice as far from x as y is, or far in any case."""
    target = scene.things[x]
    return distance(target, scene.things[z]) > min(2 * distance(target, scene.things[y]), FAR)


def _same(attribute: str) -> Callable[[Scene, int], Sequence[int]]:
    """All things that share this attribute with x."""

    def right(scene: Scene, x: int) -> Sequence[int]:
        value = getattr(scene.things[x], attribute)
        return [y for y, thing in enumerate(scene.things) if y != x and value and getattr(thing, attribute) == value]

    return right


def _shared_colors(scene: Scene, x: int, y: int) -> Values:
    color, colors = _color(scene, x)
    return {"color": (color, [candidate for candidate in colors if candidate in KINDS[scene.things[y].kind].colors])}


WAY = "{x} faces {way}, and {y}, which is {color}, is the first thing that way."
FORMS = dict(
    zip(
        QUESTIONS,
        (
            Form("what is {x} looking at?", "{x} is looking at {y}.", WAY, **_ahead_functions("looking")),
            Form("what is {x} going towards?", "{x} is going towards {y}.", WAY, **_ahead_functions("going")),
            Form(
                "what is next to {x}?",
                "{y} is next to {x}.",
                "{y}, which is {color}, is closer to {x}, which is {other}, than anything else.",
                right=_next_to,
                wrong=_twice_as_far,
                values=lambda scene, x, y: {"color": _color(scene, y), "other": _color(scene, x)},
                by_place=True,
            ),
            Form(
                "what has the same color as {x}?",
                "{y} has the same color as {x}.",
                "{y} is {color}, and so is {x}.",
                right=_same("color"),
                wrong=lambda scene, x, y, z: (
                    scene.things[z].color != scene.things[x].color
                    and len(_combinations(_shared_colors(scene, x, z))) >= CHOICES  # it might have been the same
                ),
                values=_shared_colors,
            ),
            Form(
                "what is on the same side as {x}?",
                "{y} is on the same side as {x}.",
                "{y}, which is {color}, is on the {way}, and so is {x}.",
                right=_same("side"),
                wrong=lambda scene, x, y, z: {scene.things[x].side, scene.things[z].side} == {*SIDES},
                values=lambda scene, x, y: {"way": (scene.things[x].side, SIDES), "color": _color(scene, y)},
            ),
        ),
        strict=True,
    )
)
