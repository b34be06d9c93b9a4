"""Predicted: what a card tells of a step's label, choice, region or boxes, beside what is right.

Nothing here knows a task: what a label means follows from its kind of prediction and from what its value looks like."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..tensors import Prediction
from .frames import Box, overlap
from .mentions import Mention, are_mentions

MOST, LEAST = 5, 0.005  # answers of a label that are shown, and the share that one of them has at least
RIGHT = 0.5 - 1e-5  # the overlap from which on a box is right


@dataclass(frozen=True)
class Truth:
    """What is right about an example, as far as its labels say.

    answers  answer -> how right it is, from 0 to 1
    choices  the texts to choose from; `choice`: which of them, from 0; `mentions`: those of each, or none
    box      the right one, relative to the picture's size; `span`: the first and last + 1 character of what it is of
    """

    answers: Mapping[str, float]
    choices: tuple[str, ...] = ()
    choice: int | None = None
    mentions: tuple[Sequence[Mention], ...] = ()
    box: Box | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class Bar:
    """One of several answers: its share in percent, and whether it was chosen and is right."""

    text: str
    share: float
    chosen: bool
    right: bool


@dataclass(frozen=True)
class Summary:
    """What a card says of a prediction: bars, or a line and how sure it is in percent; `right`: None where unknown."""

    bars: tuple[Bar, ...] = ()
    line: str = ""
    sure: float | None = None
    right: bool | None = None
    box: Box | None = None  # to be drawn


def truth_of(labels: Mapping[str, Any], kind: str) -> Truth:
    """`labels`: those that the objective asks for, as far as the example has them."""
    values = [*labels.values()]
    if kind == "choice":
        texts = next((value for value in values if _texts(value)), ())
        mentions = next((value for value in values if _texts_mentions(value, len(texts))), ())
        return Truth({}, tuple(texts), next((value for value in values if _whole(value)), None), tuple(mentions))
    if kind in ("region", "boxes"):
        spans = next((value for value in values if _spans(value)), None)
        if spans:
            first, end, box = spans[0]
            return Truth({}, box=box, span=(first, end))
        return Truth({}, box=next((value for value in values if _box(value)), None))
    return Truth({answer: weight for value in values for answer, weight in _answers(value).items()})


def summary_of(made: Prediction, kind: str, truth: Truth) -> Summary:
    """What a card says of a prediction of this kind."""
    if kind == "label":
        return _label(made, truth)
    if kind == "choice":
        return _choice(made, truth)
    return _region(made, truth) if kind == "region" else _boxes(made, truth)


def _label(made: Prediction, truth: Truth) -> Summary:
    shares = made.value.get("probabilities") or {made.value["label"]: made.score}
    order = sorted(shares.items(), key=lambda pair: -pair[1])
    shown = [pair for place, pair in enumerate(order[:MOST]) if place < 2 or pair[1] >= LEAST]
    best = made.value["label"]
    return Summary(
        tuple(Bar(text, 100 * share, text == best, truth.answers.get(text, 0) > 0) for text, share in shown),
        right=truth.answers.get(best, 0) > 0 if truth.answers else None,
    )


def _choice(made: Prediction, truth: Truth) -> Summary:
    best, shares = made.value["choice"], made.value["probabilities"]
    bars = (Bar(letter(place), 100 * share, place == best, place == truth.choice) for place, share in enumerate(shares))
    return Summary(tuple(bars), right=None if truth.choice is None else best == truth.choice)


def _region(made: Prediction, truth: Truth) -> Summary:
    box = made.value["box"]
    if truth.box is None:
        return Summary(line="a region", sure=100 * made.score, box=box)
    shared = overlap(box, truth.box)
    if place := made.value.get("picture"):  # of several; the right box is one of the first
        return Summary((), f"a region of picture {place + 1}", 100 * made.score, False, box)
    return Summary((), f"overlap {round(100 * shared)}\u202f%", 100 * made.score, shared >= RIGHT, box)


def _boxes(made: Prediction, truth: Truth) -> Summary:
    boxes: Sequence[Box] = made.value
    if not boxes:
        return Summary(line="no box", right=None if truth.box is None else False)
    if truth.box is None:
        return Summary(line=f"{len(boxes)} boxes", sure=100 * made.score, box=boxes[0])
    own = truth.box
    rank = next((place for place, box in enumerate(boxes, 1) if overlap(box, own) >= RIGHT), None)
    line = f"right at rank {rank} of {len(boxes)}" if rank else f"none of {len(boxes)} boxes is right"
    line += f", overlap {round(100 * overlap(boxes[0], own))}\u202f%" if rank == 1 else ""
    return Summary((), line, 100 * made.score, rank == 1, boxes[0])


def letter(place: int) -> str:
    """What a choice is called: A, B, ..., and numbers where there are too many."""
    return string.ascii_uppercase[place] if place < len(string.ascii_uppercase) else str(place + 1)


def _answers(value: Any) -> dict[str, float]:
    if isinstance(value, Mapping):
        return {answer: weight for answer, weight in value.items() if _number(weight)}
    return dict.fromkeys(value if _texts(value) else [str(value)] if isinstance(value, str | bool) else [], 1.0)


def _texts(value: Any) -> bool:
    return isinstance(value, tuple | list) and bool(value) and all(isinstance(each, str) for each in value)


def _texts_mentions(value: Any, count: int) -> bool:
    """Whether it is a list of mentions for each of so many texts."""
    return isinstance(value, tuple | list) and len(value) == count > 0 and all(map(are_mentions, value))


def _spans(value: Any) -> bool:
    return (
        isinstance(value, tuple | list)
        and bool(value)
        and all(
            isinstance(each, tuple | list) and len(each) == 3 and _whole(each[0]) and _whole(each[1]) and _box(each[2])
            for each in value
        )
    )


def _box(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) == 4 and all(map(_number, value))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
