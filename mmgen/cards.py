"""Cards: what a renderer says of an example and its prediction, for the page and the terminal. No torch is needed.

A box is (x0, y0, x1, y1), relative to the picture's size. A share is a number from 0 to 1."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Share = Annotated[float, Field(ge=0, le=1 + 1e-6)]  # rounding may make it a little more than 1
Finite = Annotated[float, Field(allow_inf_nan=False)]
Box = tuple[Finite, Finite, Finite, Finite]


@dataclass(frozen=True)
class Bar:
    """One of several answers with its share. `chosen`: the step answered this; `right`: it is a right answer."""

    text: str
    share: Share
    chosen: bool = False
    right: bool = False


@dataclass(frozen=True)
class Piece:
    """A piece of a text. `marked`: the prediction is about it; `numbers`: the objects of the card (`Card.objects`) that
    it names, counted from 1."""

    text: str
    marked: bool = False
    numbers: tuple[Annotated[int, Field(ge=1)], ...] = ()


@dataclass(frozen=True)
class Choice:
    """One of the texts that a step chose from."""

    pieces: tuple[Piece, ...]
    right: bool = False


@dataclass(frozen=True)
class Card:
    """What a page shows of one step's prediction for one example. Every field may be left out.

    bars        the most probable answers, the first one first; in place of `line`
    line        a sentence. A text (a `Generation`) is shown word by word where there is neither a bar nor a line
    confidence  shown behind the line as a percentage; 1 is 100 %
    right       whether the prediction is right; None where nobody knows
    box         what the step drew, on the first picture
    right_box   what is right there
    answers     right answers, the best first; those that no bar has are listed
    choices     the texts that there were to choose from, called A, B, ... (`letter`)
    texts       field of the example -> its text in pieces, where some are marked or numbered
    objects     what pieces' numbers mean: object number 1, 2, ... is the box of this place in `Picture.boxes`
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


def checked_card(card: Any) -> Card:
    """The card that a renderer returned, with tuples for lists. Raises ValueError, which says what is wrong with it."""
    from pydantic import ValidationError

    if not isinstance(card, Card):
        raise ValueError(f"returned {card!r:.60}; expected a mmgen.cards.Card")
    try:
        return _adapter().validate_python(asdict(card))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise ValueError(f"returned a card whose {place} is {first['input']!r:.60}: {reason}") from None


@cache
def _adapter() -> TypeAdapter[Card]:
    from pydantic import TypeAdapter

    return TypeAdapter(Card)


def letter(place: int) -> str:
    """The name of a choice: A, B, ..., and numbers where there are too many."""
    return string.ascii_uppercase[place] if place < len(string.ascii_uppercase) else str(place + 1)


def corners(box: Sequence[float]) -> str:
    """A box as text: its left, upper, right and lower side, as shares of the picture."""
    return f"[{', '.join(f'{corner:.3f}' for corner in box)}]"


def as_json(value: Any) -> str:
    """The value of a prediction as one line of JSON, for predictions that no renderer knows."""
    return json.dumps(value, ensure_ascii=False)
