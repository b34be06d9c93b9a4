"""Scores that are means over examples."""

import pytest
from mmgen_tasks.columns import by_kind, means, prediction_value, scores, unknown

from mmgen.errors import DataError
from mmgen.examples import Example


def test_means_leave_out_examples_without_a_value():
    assert means({"a": [100.0, None, 0.0], "b": [None]}, "chance_") == {"chance_a": 50.0, "chance_b": None}
    result = scores({"a": [100.0, 50.0]}, ["one note"])
    assert (result.values, result.per_example, result.notes) == ({"a": 75.0}, {"a": [100.0, 50.0]}, ("one note",))


def test_a_column_for_every_kind():
    examples = [Example(str(number), {}, facts={"type": kind}) for number, kind in enumerate(("b", "a", "b", None))]
    assert by_kind([1.0, 2.0, 3.0, 4.0], examples, "type") == {
        "a": [None, 2.0, None, None],
        "b": [1.0, None, 3.0, None],
    }


def test_examples_that_cannot_be_scored_are_noted():
    assert unknown([1.0, None, None], "box") == ("2 of 3 examples have no box, and are not scored",)
    assert unknown([1.0], "box") == ()


def test_a_prediction_without_its_value():
    assert prediction_value({"label": "yes"}, "label", "7") == "yes"
    with pytest.raises(DataError) as error:
        prediction_value(["yes"], "label", "7")
    assert str(error.value) == "example '7': the prediction must be {\"label\": ...}, not ['yes']"
