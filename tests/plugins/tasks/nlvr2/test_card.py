"""NLVR2's card: true and false as bars."""

import pytest
from mmgen_tasks.nlvr2.card import TruthCard
from mmgen_tasks.nlvr2.config import TruthBars

from mmgen.cards import Bar, Card
from mmgen.tensors import Example, Prediction
from mmgen.testing import RendererSuite


@pytest.mark.parametrize("truth", [True, False, None])
def test_nlvr2_shows_true_and_false(truth):
    example = Example("n", {"statement": "two dogs"}, (), {}, {} if truth is None else {"truth": truth})
    prediction = Prediction("n", {"label": "True", "probabilities": {"False": 0.25, "True": 0.75}}, 0.75)
    bars = (Bar("True", 0.75, chosen=True, right=truth is True), Bar("False", 0.25, right=truth is False))
    assert TruthCard().card(example, prediction) == Card(
        bars=bars, right=truth, answers=() if truth is None else (str(truth),)
    )
    assert TruthCard().line(example, prediction) == "True"


class TestTruthBars(RendererSuite):
    def config(self):
        return TruthBars()

    def examples(self):
        return [Example("a", {"statement": "so"}, (), {}, {"truth": False})]

    def predictions(self, examples):
        return [Prediction("a", {"label": "True", "probabilities": {"True": 0.7, "False": 0.3}}, 0.7)]
