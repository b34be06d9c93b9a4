"""NLVR2's card: the probability that a statement is true, and whether it is true."""

from __future__ import annotations

from mmgen_vl.cards import label_card

from mmgen.cards import Card
from mmgen.parts import Renderer
from mmgen.tensors import Prediction, ResolvedExample


class TruthCard(Renderer):
    """ "True" and "False" as bars (label "truth": a bool)."""

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        truth = example.labels.get("truth")
        return label_card(prediction, {} if truth is None else {str(truth): 1.0})

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        return prediction.value["label"]
