"""Predictions that the tasks' metrics cannot score give a one-line error."""

import pytest
from kit.judged import EXPRESSIONS, FAR, ITEMS, PHRASES, STATEMENTS, predictions_of
from mmgen_tasks import BoxAccuracy, ChoiceAccuracy, PairAccuracy, PhraseRecall

from mmgen.errors import DataError
from mmgen.examples import Example


@pytest.mark.parametrize(
    ("config", "value", "example", "words"),
    [
        (PairAccuracy, "True", STATEMENTS[0], "the prediction must be {\"label\": ...}, not 'True'"),
        (ChoiceAccuracy, {"choice": "b"}, ITEMS[0], "the choice must be a non-negative integer, not 'b'"),
        (BoxAccuracy, {"box": [0, 0, 1]}, EXPRESSIONS[0], "the prediction: a box must be four numbers"),
        (PhraseRecall, {"box": [0, 0, 1, 1]}, PHRASES[0], "the prediction must be a list of boxes"),
        (PhraseRecall, [[0, 0, 1, None]], PHRASES[0], "the prediction: a box must be four numbers"),
        (
            PhraseRecall,
            [],
            Example("p", {}, labels={"phrases": ((0, 1, FAR), (2, 3, FAR))}),
            "has 2 phrases; a scored example must have one phrase",
        ),
    ],
)
def test_predictions_of_another_kind_give_one_line(config, value, example, words):
    with pytest.raises(DataError) as caught:
        config().build().score(predictions_of([value], [example]), [example])
    assert str(caught.value).startswith(f"example '{example.id}': {words}")
