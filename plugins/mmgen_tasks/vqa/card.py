"""VQA's card: the most probable answers as bars, and the answers of people."""

from __future__ import annotations

from mmgen_vision.cards import label_card

from mmgen.cards import Card
from mmgen.examples import Prediction, ResolvedExample
from mmgen.parts import Renderer


class AnswerCard(Renderer):
    """Bars of the likeliest answers; an answer is right if any person gave it (label "answers": {answer: weight})."""

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        return label_card(prediction, example.labels.get("answers", {}))

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        return prediction.value["label"]
