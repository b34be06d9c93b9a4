"""The card of Flickr30K Entities: a phrase marked in its caption, the likeliest box, and the rank of the right box."""

from __future__ import annotations

from collections.abc import Sequence

from mmgen_vision.cards import as_box, overlap

from mmgen.cards import Box, Card, Piece, corners
from mmgen.examples import Prediction, ResolvedExample
from mmgen.parts import Renderer


class PhraseCard(Renderer):
    """Shows the first of an example's phrases (label "phrases": (first character, end, box)). `caption`: the input with
    the phrase."""

    caption = "caption"

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        phrases, boxes = example.labels.get("phrases"), prediction.value
        first, end, right = phrases[0] if phrases else (0, 0, None)
        text = example.inputs.get(self.caption, "")
        return Card(
            line=self._rank(boxes, right),
            confidence=prediction.score if boxes else None,
            right=None if right is None else bool(boxes) and overlap(boxes[0], right)[1],
            box=as_box(boxes[0]) if boxes else None,
            right_box=None if right is None else as_box(right),
            texts={self.caption: (Piece(text[:first]), Piece(text[first:end], marked=True), Piece(text[end:]))}
            if phrases
            else {},
        )

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        boxes = prediction.value
        if not boxes:
            return "no box"
        return corners(boxes[0]) + (f" and {len(boxes) - 1} more" if len(boxes) > 1 else "")

    def _rank(self, boxes: Sequence[Box], right: Box | None) -> str:
        if not boxes:
            return "no box"
        if right is None:
            return f"{len(boxes)} boxes"
        rank = next((place for place, box in enumerate(boxes, 1) if overlap(box, right)[1]), None)
        if rank is None:
            return f"none of {len(boxes)} boxes is right"
        line = f"right at rank {rank} of {len(boxes)}"
        return line + (f", overlap {round(100 * overlap(boxes[0], right)[0])}\u202f%" if rank == 1 else "")
