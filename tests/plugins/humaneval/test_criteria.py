"""Criteria: what judges read, and what is shown to them."""

import pytest
from mmgen_humaneval.criteria import ANSWER_CONSISTENCY, CRITERIA, PAPER, QGEVAL, SETS


def test_sets():
    assert [len(SETS[name]) for name in ("paper", "qgeval", "all")] == [3, 7, 10]
    assert not {*PAPER} & {*QGEVAL}  # a rating belongs to one criterion
    assert SETS["all"] == (*CRITERIA,)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_question_shows_what_it_asks_about(name):
    criterion = CRITERIA[name]
    assert criterion.words == (criterion.question, criterion.meaning, criterion.lowest, criterion.highest)
    assert criterion.question.endswith("?") and all(criterion.words)
    for what in ("caption", "picture"):
        assert what not in criterion.question or what in criterion.shows
    assert ("answer" in criterion.shows) == (name == ANSWER_CONSISTENCY)
