"""Cards by kind of prediction: a label as bars, choices, a region, boxes; and the words of texts that name objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from mmgen_vision.boxes import RIGHT, iou
from mmgen_vision.mentions_config import BEHIND, Mention
from mmgen_vision.truths import right_label

import mmgen
from mmgen.cards import Bar, Box, Card, Choice, Piece, corners, letter
from mmgen.examples import Generation, Prediction, ResolvedExample

BARS = 5  # maximum number of answers shown for a label
LEAST = 0.005  # minimum share of the third and later answers


class OwnRenderer(mmgen.RendererConfig):
    """A renderer that needs nothing but its config. A subclass has `card` and `line`, as `mmgen.parts.Renderer`."""

    def card(self, example: ResolvedExample, prediction: Any) -> Card:
        raise NotImplementedError

    def line(self, example: ResolvedExample, prediction: Any) -> str:
        raise NotImplementedError

    def build(self):
        return self


class LabelCard(OwnRenderer):
    """Labels: the most probable answers as bars, and which of them are right (labels "answers", of people, or
    "truth")."""

    type: Literal["label_card"] = "label_card"
    renders = frozenset({"label"})

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        return label_card(prediction, example.labels.get("answers") or right_label(example))

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        return str(prediction.value["label"])


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


class NamedTextsCard(OwnRenderer):
    """VCR's texts: the words that name objects, for a step that generates text or classifies choices."""

    type: Literal["vcr_texts_card"] = "vcr_texts_card"
    renders = frozenset({"text", "label"})
    datasets = ("vcr", "vcr_texts", "scene_choices")

    def card(self, example: ResolvedExample, prediction: Prediction | Generation) -> Card:
        named = NamedObjects()
        texts = named.texts(example)
        card = Card() if isinstance(prediction, Generation) else label_card(prediction, right_label(example))
        return replace(card, texts=texts, objects=named.objects)

    def line(self, example: ResolvedExample, prediction: Prediction | Generation) -> str:
        return prediction.text if isinstance(prediction, Generation) else prediction.value["label"]


class RegionCard(OwnRenderer):
    """Regions: the chosen one beside the right one (label "box", of the first picture), and how much they overlap."""

    type: Literal["region_card"] = "region_card"
    renders = frozenset({"region"})

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        box, right = prediction.value["box"], example.labels.get("box")
        picture = prediction.value.get("picture", 0)
        line = "a region" + (f" of picture {picture + 1}" if picture else "")
        if right is None:
            return Card(line=line, confidence=prediction.score, box=_box(box))
        shared, enough = overlap(box, right)
        return Card(
            line=line if picture else f"overlap {round(100 * shared)}\u202f%",
            confidence=prediction.score,
            right=enough and not picture,
            box=_box(box),
            right_box=_box(right),
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
            box=_box(boxes[0]) if boxes else None,
            right_box=None if right is None else _box(right),
            texts={"caption": pieces} if phrases else {},
        )

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        boxes = prediction.value
        more = f" and {len(boxes) - 1} more" if len(boxes) > 1 else ""
        return corners(boxes[0]) + more if boxes else "no box"

    def _rank(self, boxes: Sequence[Box], right: Box | None) -> str:
        if not boxes or right is None:
            return f"{len(boxes) or 'no'} box{'es' * bool(boxes)}"
        overlaps = [overlap(box, right) for box in boxes]
        rank = next((place for place, (_, enough) in enumerate(overlaps, 1) if enough), 0)
        if not rank:
            return f"none of {len(boxes)} boxes is right"
        shared = f", overlap {round(100 * overlaps[0][0])}\u202f%" if rank == 1 else ""
        return f"right at rank {rank} of {len(boxes)}{shared}"


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


def _box(numbers: Sequence[float]) -> Box:
    x0, y0, x1, y1 = numbers
    return (x0, y0, x1, y1)
