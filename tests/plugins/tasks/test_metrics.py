"""Predictions that the tasks' metrics cannot judge are refused in a line."""

import pytest
from kit.judged import EXPRESSIONS, FAR, ITEMS, PHRASES, STATEMENTS, predictions_of
from mmgen_tasks import BoxAccuracy, ChoiceAccuracy, PairAccuracy, PhraseRecall

from mmgen.errors import DataError
from mmgen.tensors import Example


@pytest.mark.parametrize(
    ("config", "value", "example", "words"),
    [
        (PairAccuracy, "True", STATEMENTS[0], "the prediction must be {\"label\": ...}, and is 'True'"),
        (ChoiceAccuracy, {"choice": "b"}, ITEMS[0], "the choice is 'b'; it is a whole number, from 0"),
        (BoxAccuracy, {"box": [0, 0, 1]}, EXPRESSIONS[0], "the prediction: a box must be four numbers"),
        (PhraseRecall, {"box": [0, 0, 1, 1]}, PHRASES[0], "the prediction must be a list of boxes"),
        (PhraseRecall, [[0, 0, 1, None]], PHRASES[0], "the prediction: a box must be four numbers"),
        (
            PhraseRecall,
            [],
            Example("p", {}, labels={"phrases": ((0, 1, FAR), (2, 3, FAR))}),
            "has 2 phrases; give an example to each to score them",
        ),
    ],
)
def test_predictions_of_another_kind_are_a_line(config, value, example, words):
    with pytest.raises(DataError) as caught:
        config().build().score(predictions_of([value], [example]), [example])
    assert str(caught.value).startswith(f"example '{example.id}': {words}")
