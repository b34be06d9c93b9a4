"""Cards of tasks about pictures: a label as bars, the overlap of boxes, texts in pieces whose objects have numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mmgen.cards import Bar, Box, Card, Piece
from mmgen.examples import Prediction, ResolvedExample

from .boxes import RIGHT, iou
from .mentions_config import BEHIND, Mention

BARS = 5  # maximum number of answers shown for a label
LEAST = 0.005  # minimum share of the third and later answers


def label_card(prediction: Prediction, answers: Mapping[str, float]) -> Card:
    """A card of a label's most probable answers, as bars. `answers`: how right each answer is, from 0 to 1; empty if
    unknown."""
    best = prediction.value["label"]
    shares = prediction.value.get("probabilities") or {best: prediction.score}
    order = sorted(shares.items(), key=lambda pair: -pair[1])
    shown = [pair for place, pair in enumerate(order[:BARS]) if place < 2 or pair[1] >= LEAST]
    by_weight = sorted(answers.items(), key=lambda pair: -pair[1])
    return Card(
        bars=tuple(Bar(text, share, text == best, answers.get(text, 0) > 0) for text, share in shown),
        right=answers.get(best, 0) > 0 if answers else None,
        answers=tuple(answer for answer, weight in by_weight if weight > 0),
    )


def overlap(box: Sequence[float], right: Sequence[float]) -> tuple[float, bool]:
    """Intersection over union of a box and the right box, and whether the box counts as right."""
    shared = float(iou(box, right)[0, 0])
    return shared, shared >= RIGHT


def as_box(numbers: Sequence[float]) -> Box:
    """Convert a box from JSON to the form of a card."""
    x0, y0, x1, y1 = numbers
    return (x0, y0, x1, y1)


class NamedObjects:
    """Numbers the objects that a card's texts name, from 1, in the order of the texts."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    @property
    def objects(self) -> tuple[int, ...]:
        """The objects in the order of their numbers: `Card.objects`."""
        return tuple(self._numbers)

    def pieces(self, text: str, mentions: Iterable[Mention]) -> tuple[Piece, ...]:
        """Split a text into pieces. Mentions outside of the text or inside another mention are left out."""
        pieces, end = [], 0
        for first, stop, objects in sorted(mentions):
            if end <= first < stop <= len(text):
                numbers = tuple(self._numbers.setdefault(place, len(self._numbers) + 1) for place in objects)
                pieces += [Piece(text[end:first]), Piece(text[first:stop], numbers=numbers)]
                end = stop
        return tuple(piece for piece in (*pieces, Piece(text[end:])) if piece.text)

    def texts(self, example: ResolvedExample) -> dict[str, tuple[Piece, ...]]:
        """The texts of an example that have mentions of objects, in pieces: `Card.texts`."""
        fields = [name for name in example.inputs if f"{name}{BEHIND}" in example.inputs]
        return {name: self.pieces(example.inputs[name], example.shown(f"{name}{BEHIND}")) for name in fields}
