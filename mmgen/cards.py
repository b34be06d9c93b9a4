"""Cards: what a renderer shows of an example and its prediction (bars, boxes, choices, texts). No torch.

Cards check their values where they are made, and lists become tuples. A box is (x0, y0, x1, y1), relative to the
picture's size. A share is a number from 0 to 1."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

MOST_JSON = 100  # characters of a value without a renderer
Share = Annotated[float, Field(ge=0, le=1 + 1e-6)]  # slightly more than 1 after rounding
Finite = Annotated[float, Field(allow_inf_nan=False)]
Box = tuple[Finite, Finite, Finite, Finite]


@dataclass(frozen=True)
class Bar:
    """One of several answers with its share. `chosen`: the step's answer; `right`: whether the answer is correct."""

    text: str
    share: Share
    chosen: bool = False
    right: bool = False


@dataclass(frozen=True)
class Piece:
    """A piece of a text. `marked`: the prediction is about this piece; `numbers`: the objects (`Card.objects`) that the
    piece names, counted from 1."""

    text: str
    marked: bool = False
    numbers: tuple[Annotated[int, Field(ge=1)], ...] = ()


@dataclass(frozen=True)
class Choice:
    """One of the texts from which a step chose."""

    pieces: tuple[Piece, ...]
    right: bool = False


@dataclass(frozen=True)
class Card:
    """One step's prediction for one example, as the page shows it. Every field is optional.

    bars        the most probable answers, most probable first; shown instead of `line`
    line        a sentence. A text (a `Generation`) is shown word by word if the card has neither bars nor a line
    confidence  shown after the line as a percentage; 1 is 100 %
    right       whether the prediction is correct; None if unknown
    box         the predicted box, on the first picture
    right_box   the correct box, on the first picture
    answers     correct answers, best first; those without a bar are listed
    choices     the texts to choose from, named A, B, ... (`letter`)
    texts       field of the example -> its text in pieces, if some pieces are marked or numbered
    objects     for object number 1, 2, ...: the index of its box in `Picture.boxes`
    """

    bars: tuple[Bar, ...] = ()
    line: str = ""
    confidence: Finite | None = None
    right: bool | None = None
    box: Box | None = None
    right_box: Box | None = None
    answers: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    texts: Mapping[str, tuple[Piece, ...]] = field(default_factory=dict)
    objects: tuple[Annotated[int, Field(ge=0)], ...] = ()


def letter(place: int) -> str:
    """The name of a choice: A, B, ..., Z, then 27, 28, ..."""
    return string.ascii_uppercase[place] if place < len(string.ascii_uppercase) else str(place + 1)


def corners(box: Sequence[float]) -> str:
    """A box as text: left, top, right and bottom, relative to the picture's size."""
    return f"[{', '.join(f'{corner:.3f}' for corner in box)}]"


def as_json(value: Any) -> str:
    """The value of a prediction as a short line of JSON, for predictions without a renderer."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_JSON else f"{text[: MOST_JSON - 1]}…"
