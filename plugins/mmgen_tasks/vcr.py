"""VCR (Zellers et al., 2019): which of four answers is right, and which of four rationales; the leaderboard's CSV."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from math import inf, isfinite, prod
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from mmgen_vision.boxes import WHOLE, Box, relative
from mmgen_vision.configs import About, Published
from mmgen_vision.items import CHOICES, NAMES, PERSON, Item, Text
from pydantic import AfterValidator, Field

from mmgen.errors import DataError
from mmgen.examples import All, Example, Prediction, Scores
from mmgen.files import image_key
from mmgen.reading.results import ResultFiles
from mmgen.reading.rows import Filled, Line, Row, tidy, validate
from mmgen.reading.text import parse_json, read_text, rows

from .columns import Accuracy, Column, means, prediction_value

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData

ATTACHED = re.compile(
    r"[.,?!;:']"
)  # a word that begins so follows the word before it without a blank; its word pieces stay the same
CLASSES = """person bicycle car motorcycle airplane bus train truck boat trafficlight firehydrant stopsign parkingmeter
bench bird cat dog horse sheep cow elephant bear zebra giraffe backpack umbrella handbag tie suitcase frisbee skis
snowboard sportsball kite baseballbat baseballglove skateboard surfboard tennisracket bottle wineglass cup fork knife
spoon bowl banana apple sandwich orange broccoli carrot hotdog pizza donut cake chair couch pottedplant bed diningtable
toilet tv laptop mouse remote keyboard cellphone microwave oven toaster sink refrigerator book clock vase scissors
teddybear hairdrier toothbrush""".split()  # COCO's 80 classes in COCO's order, which are VCR's objects
WHOLE_NAME = "the whole picture"
SUBTASKS = {"answer": "Q->A", "rationale": "QA->R"}


def _word(value: Any) -> str | list[int]:
    if isinstance(value, str):
        return tidy(value)
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        raise ValueError("must be a word, or a list of the numbers of objects")
    return value


Words = list[Annotated[Any, AfterValidator(_word)]]
Choices = Annotated[list[Words], Field(min_length=CHOICES, max_length=CHOICES)]
Right = Annotated[int, Field(ge=0, lt=CHOICES)]
Side = Annotated[float, Field(gt=0, lt=1e9)]


class Still(Row):
    """A line: a question about a film's still, its answers and rationales."""

    annot_id: Filled
    img_fn: Filled
    objects: list[Filled] = Field(max_length=1000)
    question: Words
    answer_choices: Choices
    rationale_choices: Choices
    answer_label: Right | None = None
    rationale_label: Right | None = None

    def item(self, place: str) -> Item:
        """The item of a line. People get arbitrary names; other objects are named by their class. Raises DataError."""
        people = cycle(NAMES)
        names = [next(people) if name == PERSON else name for name in self.objects]
        question, *choices = (
            join_words(words, names, place) for words in (self.question, *self.answer_choices, *self.rationale_choices)
        )
        return Item(
            self.annot_id,
            image_key(PurePosixPath(self.img_fn).name),
            tuple(self.objects),
            question,
            tuple(choices[:CHOICES]),
            tuple(choices[CHOICES:]),
            self.answer_label,
            self.rationale_label,
        )


class Metadata(Row):
    """The objects of a still, in the file beside the picture."""

    boxes: list[Annotated[list[float], Field(min_length=4, max_length=5)]]
    names: list[Line]
    width: Side
    height: Side


def join_words(words: Sequence[Any], names: Sequence[str], place: str) -> Text:
    """Words joined; a list of numbers among them mentions the objects of these numbers. Raises DataError."""
    text, mentions = "", []
    for word in words:
        for number, position in enumerate(word if isinstance(word, list) else ()):
            if not 0 <= position < len(names):
                raise DataError(f"{place}: mentions object {position}, but the still has {len(names)} objects")
            text += " and " if number else " " if text else ""
            mentions.append((len(text), len(text) + len(names[position]), (position,)))
            text += names[position]
        if isinstance(word, str) and word:
            text += word if not text or ATTACHED.match(word) else f" {word}"
    if not text:
        raise DataError(f"{place}: a text has no words")
    return Text(text, tuple(mentions))


class Vcr(Published):
    """VCR: which of four answers is right, and which of four rationales. `images` is the folder vcr1images, with the
    metadata beside the pictures."""

    type: Literal["vcr"] = "vcr"
    about = About("VCR", "the terms of visualcommonsense.com", "visualcommonsense.com/download, vcr1annots.zip")
    below = ("vcr1annots",)
    labels: ClassVar[tuple[str, ...]] = ("choices", "choice_mentions", "choice", "objects")

    test_split: str = Field("val", description="the split that every step predicts and is scored on")
    subtask: Literal["answer", "rationale", "both", "every"] = Field(
        "both",
        description="answers; rationales of the right answer; both; or, for the leaderboard, also the rationales of "
        "each of the four answers",
    )

    def find(self, finder: Finder, split: str) -> Files:
        return {"items": finder.files(split, f"{split}.jsonl")}

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """Choices to a question (ITEM-answer), or to a question and its answer (ITEM-rationale; ITEM-rationale-K given
        answer K, whether it is right or not).

        inputs   "image": its key; "question"; "question_mentions": `All` of (first character, end, objects), where the
                 question mentions objects
        labels   "choices": four texts; "choice_mentions": their mentions; "choice": which choice is right, from 0,
                 where that is known and the given answer is right; "objects": the class of every object
        facts    asks: "answer" or "rationale"; item and group: the line's `annot_id`; image
        """
        for place, row in data.rows(split, "items", Still, unique="annot_id"):
            if self.subtask == "rationale" and row.answer_label is None:
                yield "question{s} without answers"
            yield from row.item(place).examples(self.subtask)

    def vocabularies(self, data: PublishedData) -> Mapping[str, tuple[str, ...]]:
        """The classes of objects: COCO's 80, and the other classes of the training split."""
        names = {name for example in data.split(self.train_split) for name in example.labels["objects"]}
        return {"objects": (*CLASSES, *sorted(names.difference(CLASSES)))}

    def boxes(self, data: PublishedData, key: str) -> tuple[list[Box], list[str]]:
        """The boxes of a picture's objects in their order and, last, the whole picture."""
        path = data.pictures_at[key].with_suffix(".json")
        still = validate(parse_json(read_text(path), path), Metadata, path)
        boxes = [relative(box[:4], still.width, still.height) for box in still.boxes]
        if len(boxes) != len(still.names) or None in boxes:
            raise DataError(f"{path}: needs a name and a box inside of the picture for every object")
        return [*filter(None, boxes), WHOLE], [*still.names, WHOLE_NAME]


class VcrTexts(Vcr):
    """VCR's texts with one choice per example, right or wrong, as VisualBERT is pretrained on them: a question and one
    of its choices."""

    type: Literal["vcr_texts"] = "vcr_texts"  # type: ignore[assignment]
    labels: ClassVar[tuple[str, ...]] = ("truth",)

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """For each example of `Vcr` one per choice (ITEM-answer-K, ITEM-rationale-K), K from 0, with the inputs
        "choice" and "choice_mentions", and the label "truth": whether the choice is right, where that is known."""
        for example in super().read(data, split):
            if isinstance(example, str):
                yield example
                continue
            choices = zip(example.labels["choices"], example.labels["choice_mentions"], strict=True)
            for place, (choice, mentions) in enumerate(choices):
                inputs = {**example.inputs, "choice": choice}
                inputs |= {"choice_mentions": All(mentions)} if mentions else {}
                labels = {"truth": place == example.labels["choice"]} if "choice" in example.labels else {}
                yield replace(example, id=f"{example.id}-{place}", inputs=inputs, labels=labels)

    def vocabularies(self, data: PublishedData) -> Mapping[str, tuple[str, ...]]:
        return {}


class ChoiceAccuracy(Accuracy):
    """VCR's accuracies in percent: answers (Q->A), rationales given the right answer (QA->R), and items whose answer
    and rationale are both right (Q->AR) (Zellers et al., 2019); for choices of other data, accuracy."""

    type: Literal["choice_accuracy"] = "choice_accuracy"
    judges = frozenset({"choice"})
    required_labels = ("choice",)

    @classmethod
    def result_files(cls):
        return VcrResults()

    def is_right(self, prediction: Prediction, example: Example) -> bool:
        choice = prediction_value(prediction.value, "choice", example.id)
        if not isinstance(choice, int) or isinstance(choice, bool):
            raise DataError(f"example '{example.id}': the choice must be a non-negative integer, not {choice!r:.60}")
        return bool(choice == example.labels["choice"])

    def references(self, examples: Sequence[Example]) -> Scores:
        chances = [
            100 / len(example.labels.get("choices", range(CHOICES))) if "choice" in example.labels else None
            for example in examples
        ]
        return Scores(
            means(self.columns(chances, examples), "chance_"), notes=("chance: one of the choices at random",)
        )

    def columns(self, right: Column, examples: Sequence[Example]) -> dict[str, Column]:
        names = [SUBTASKS.get(example.facts.get("asks", ""), "accuracy") for example in examples]
        columns: dict[str, Column] = {
            name: [value if name == column else None for value, column in zip(right, names, strict=True)]
            for name in (*SUBTASKS.values(), "accuracy")
            if name in names
        }
        if {*SUBTASKS.values()} <= columns.keys():
            columns = {**columns, "Q->AR": self._both(right, examples)}
        return columns

    def _both(self, right: Column, examples: Sequence[Example]) -> Column:
        """Q->AR, at the first example of every item."""
        items = defaultdict[str, dict[str, int]](dict)
        for place, example in enumerate(examples):
            if right[place] is not None and (asks := example.facts.get("asks")) in SUBTASKS:
                items[str(example.facts.get("item", example.id))][asks] = place
        both: list[float | None] = [None] * len(examples)
        for places in items.values():
            if len(places) == len(SUBTASKS):
                both[min(places.values())] = 100 * prod((right[place] or 0.0) / 100 for place in places.values())
        return both


class VcrResults(ResultFiles):
    """The leaderboard's CSV: per item the probabilities of 4 answers, and of 4 rationales for each answer.

    Examples are `ITEM-answer`, `ITEM-rationale` (given the right answer) and `ITEM-rationale-K` (given answer K)."""

    name = "vcr"
    groups = {"answer": "answer"} | {f"rationale-{k}": f"rationale_conditioned_on_a{k}" for k in range(CHOICES)}
    header = ("annot_id", *(f"{group}_{choice}" for group in groups.values() for choice in range(CHOICES)))

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        right = {example.id: example.labels.get("choice") for example in examples}
        values: dict[str, Any] = {}
        table = rows(path)
        _, header = next(table)
        if tuple(header) != self.header:
            raise DataError(f"{path}:1: the {len(self.header)} columns must be {', '.join(self.header[:3])}, ...")
        for number, (item, *shares) in table:
            try:
                numbers = [float(share) for share in shares]
            except ValueError:
                numbers = [inf]
            if not all(map(isfinite, numbers)):
                raise DataError(f"{path}:{number}: probabilities must be numbers")
            for place, name in enumerate(self.groups):
                values[f"{item}-{name}"] = _most_probable(numbers[CHOICES * place : CHOICES * (place + 1)])
            if (name := f"{item}-rationale") in right:
                if (answer := right.get(f"{item}-answer")) is None:
                    raise DataError(
                        f"{path}: '{name}' needs the right answer, which these examples do not have; score with "
                        'examples of both subtasks, data.subtask = "both"'
                    )
                values[name] = values[f"{name}-{answer}"]
        return {name: value for name, value in values.items() if name in right or not name[-1:].isdigit()}

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        lines = [",".join(self.header)]
        for item in dict.fromkeys(str(example.facts.get("item", example.id)) for example in examples):
            shares = [share for name in self.groups for share in _probabilities(values, f"{item}-{name}")]
            lines.append(",".join([item, *map(repr, shares)]))
        return "".join(line + "\n" for line in lines)


def _most_probable(shares: list[float]) -> dict[str, Any]:
    return {"choice": max(range(CHOICES), key=shares.__getitem__), "probabilities": shares}


def _probabilities(values: Mapping[str, Any], example_id: str) -> list[float]:
    if example_id not in values:
        raise DataError(
            f"no prediction for '{example_id}': VCR's file has the rationales of all four answers; give "
            '--set data.subtask="every" (steps.NAME.data.subtask for a step with its own data), and the steps '
            "of both subtasks with --step"
        )
    shares = prediction_value(values[example_id], "probabilities", example_id)
    if not isinstance(shares, list | tuple) or len(shares) != CHOICES:
        raise DataError(f"'{example_id}': the prediction must have the probabilities of 4 choices, not {shares!r:.60}")
    return [float(share) for share in shares]
