"""NLVR2's card: the probability that a statement is true, and whether it is true."""

from __future__ import annotations

from mmgen_vision.cards import label_card
from mmgen_vision.truths import right_label

from mmgen.cards import Card
from mmgen.examples import Prediction, ResolvedExample
from mmgen.parts import Renderer


class TruthCard(Renderer):
    """ "True" and "False" as bars (label "truth": a bool)."""

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        return label_card(prediction, right_label(example))

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        return prediction.value["label"]
