"""Splits of VQA's releases, and the [MASK] that answers need."""

import pytest
from mmgen_tasks.vqa.config import AnswerClasses, VqaAnswers
from mmgen_text import Text


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ("train", "val", "test", "test_dev")),
        ({"release": "okvqa"}, ("train", "val")),
        ({"questions": {"minival": ("q.json",)}}, ("train", "val", "test", "test_dev", "minival")),
    ],
)
def test_splits_of_a_release(settings, names):
    assert VqaAnswers(folder="f", **settings).names() == names


def test_answers_are_predicted_at_a_mask():
    problem = "needs a [MASK] after 'question'; give the step that input with append_mask = true"
    for inputs in ({}, {"question": Text(fields=("question",))}):
        assert AnswerClasses().errors(inputs) == problem
    assert AnswerClasses().errors({"question": Text(fields=("question",), append_mask=True)}) == ""
