"""The card of referring expressions: the chosen region beside the right one."""

from __future__ import annotations

from mmgen_vision.cards import as_box, overlap

from mmgen.cards import Card, corners
from mmgen.examples import Prediction, ResolvedExample
from mmgen.parts import Renderer


class RegionCard(Renderer):
    """The overlap of the chosen box and the right one (label "box", a box of the first picture)."""

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        box, right = as_box(prediction.value["box"]), example.labels.get("box")
        if right is None:
            return Card(line="a region", confidence=prediction.score, box=box)
        shared, enough = overlap(box, right)
        picture = prediction.value.get("picture", 0)
        return Card(
            line=f"a region of picture {picture + 1}" if picture else f"overlap {round(100 * shared)}\u202f%",
            confidence=prediction.score,
            right=enough and not picture,
            box=box,
            right_box=as_box(right),
        )

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        return corners(prediction.value["box"])
