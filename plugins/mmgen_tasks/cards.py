"""Cards by kind of prediction: a label as bars, choices, a region, boxes; and the words of texts that name objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mmgen_vision.boxes import RIGHT, iou
from mmgen_vision.mentions_config import BEHIND, Mention
from mmgen_vision.truths import right_label

import mmgen
from mmgen.cards import Bar, Box, Card, Choice, Piece, corners, letter
from mmgen.examples import Prediction, ResolvedExample


class OwnRenderer(mmgen.RendererConfig):
    """A renderer that needs nothing but its config. A subclass has `card` and `line`, as `mmgen.parts.Renderer`."""

    def build(self):
        return self


class LabelCard(OwnRenderer):
    """Labels: the most probable answers as bars, which of them are right (labels "answers", of people, or "truth"), and
    the words of texts that name objects of the picture."""

    type: Literal["label_card"] = "label_card"
    renders = frozenset({"label"})

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        named = NamedObjects()
        texts = named.texts(example)
        card = label_card(prediction, example.labels.get("answers") or right_label(example))
        return replace(card, texts=texts, objects=named.objects)

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        return prediction.value["label"]


class ChoiceCard(OwnRenderer):
    """Choices: which of them is right, and the words that name objects of the picture."""

    type: Literal["choice_card"] = "choice_card"
    renders = frozenset({"choice"})
    required_labels = ("choices", "choice")

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        labels, best = example.labels, prediction.value["choice"]
        texts, right, named = labels.get("choices", ()), labels.get("choice"), NamedObjects()
        mentions = labels.get("choice_mentions") or [()] * len(texts)
        questions = named.texts(example)
        choices = [named.pieces(text, places) for text, places in zip(texts, mentions, strict=True)]
        shares = prediction.value["probabilities"]
        return Card(
            bars=tuple(Bar(letter(place), share, place == best, place == right) for place, share in enumerate(shares)),
            right=None if right is None else best == right,
            choices=tuple(Choice(pieces, place == right) for place, pieces in enumerate(choices)),
            texts=questions,
            objects=named.objects,
        )

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        texts, best = example.labels.get("choices"), prediction.value["choice"]
        return texts[best] if texts else letter(best)


class RegionCard(OwnRenderer):
    """Regions: the chosen one beside the right one (label "box", of the first picture), and how much they overlap."""

    type: Literal["region_card"] = "region_card"
    renders = frozenset({"region"})

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        box, right = prediction.value["box"], example.labels.get("box")
        picture = prediction.value.get("picture", 0)
        line = f"a region of picture {picture + 1}" if picture else "a region"
        shared, enough = overlap(box, right or box)
        return Card(
            line=line if picture or right is None else f"overlap {round(100 * shared)}\u202f%",
            confidence=prediction.score,
            right=None if right is None else enough and not picture,
            box=box,
            right_box=right,
        )

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        return corners(prediction.value["box"])


class BoxesCard(OwnRenderer):
    """Boxes: a phrase marked in its caption (the first of the label "phrases", in the input "caption"), the likeliest
    box, and the rank of the right box."""

    type: Literal["boxes_card"] = "boxes_card"
    renders = frozenset({"boxes"})

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        phrases, boxes = example.labels.get("phrases"), prediction.value
        first, end, right = phrases[0] if phrases else (0, 0, None)
        text = example.inputs.get("caption", "")
        pieces = (Piece(text[:first]), Piece(text[first:end], marked=True), Piece(text[end:]))
        return Card(
            line=self._rank(boxes, right),
            confidence=prediction.score if boxes else None,
            right=None if right is None else bool(boxes) and overlap(boxes[0], right)[1],
            box=boxes[0] if boxes else None,
            right_box=right,
            texts={"caption": pieces} if phrases else {},
        )

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        return corners(prediction.value[0]) if prediction.value else "no box"

    def _rank(self, boxes: Sequence[Box], right: Box | None) -> str:
        if not boxes or right is None:
            return f"{len(boxes) or 'no'} box{'es' * bool(boxes)}"
        ranks = [rank for rank, box in enumerate(boxes, 1) if overlap(box, right)[1]]
        return f"right at rank {ranks[0]} of {len(boxes)}" if ranks else f"none of {len(boxes)} boxes is right"


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


def label_card(prediction: Prediction, answers: Mapping[str, float]) -> Card:
    """A card of a label's most probable answers, as bars. `answers`: how right each answer is, from 0 to 1; empty if
    unknown."""
    best = prediction.value["label"]
    shares = prediction.value.get("probabilities") or {best: prediction.score}
    shown = sorted(shares.items(), key=lambda pair: -pair[1])[:5]
    right = [answer for answer, weight in sorted(answers.items(), key=lambda pair: -pair[1]) if weight > 0]
    return Card(
        bars=tuple(Bar(text, share, text == best, text in right) for text, share in shown),
        right=best in right if answers else None,
        answers=tuple(right),
    )


def overlap(box: Sequence[float], right: Sequence[float]) -> tuple[float, bool]:
    """Intersection over union of a box and the right box, and whether the box counts as right."""
    shared = float(iou(box, right)[0, 0])
    return shared, shared >= RIGHT
