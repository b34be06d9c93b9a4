"""Mentions: words of a card's texts that mean regions (VCR), and where these regions are on its picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .frames import Box

Mention = tuple[int, int, tuple[int, ...]]  # first letter, end, which objects


@dataclass(frozen=True)
class Piece:
    """A piece of a text. `marked`: a box is of it; `numbers`: what the regions that it means are called."""

    text: str
    marked: bool = False
    numbers: tuple[int, ...] = ()


class Numbers:
    """Numbers of the objects that a card mentions, from 1, in the order in which its texts do."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}

    def pieces(self, text: str, mentions: Iterable[Mention]) -> list[Piece]:
        """The text in pieces; mentions that do not fit into it are left out."""
        found, end = [], 0
        for first, stop, objects in sorted(mentions):
            if end <= first < stop <= len(text):
                own = tuple(self._of.setdefault(each, len(self._of) + 1) for each in objects)
                found += [Piece(text[end:first]), Piece(text[first:stop], numbers=own)]
                end = stop
        return [piece for piece in (*found, Piece(text[end:])) if piece.text]

    def placed(self, boxes: Sequence[Box]) -> list[dict[str, Any]]:
        """Where the objects are that the texts mention. `boxes`: of all objects, those of the picture."""
        return [
            {"number": number, **{side: round(value, 4) for side, value in _sides(boxes[own]).items()}}
            for own, number in self._of.items()
            if own < len(boxes)
        ]


def are_mentions(value: Any) -> bool:
    """Whether a label or an input is the mentions of a text."""
    return isinstance(value, tuple | list) and all(
        isinstance(one, tuple | list)
        and len(one) == 3
        and isinstance(one[2], tuple | list)
        and all(isinstance(each, int) and each >= 0 for each in (*one[:2], *one[2]))
        for one in value
    )


def _sides(box: Box) -> dict[str, float]:
    x0, y0, x1, y1 = box
    return {"x": x0, "y": y0, "width": max(0.0, x1 - x0), "height": max(0.0, y1 - y0)}
