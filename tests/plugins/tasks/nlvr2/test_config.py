"""The keys of NLVR2's data sets and objectives."""

import pytest
from mmgen_tasks.nlvr2.config import ScenePairs, SceneStatements, TrueOrFalse
from pydantic import ValidationError


def test_two_rows_need_rows_of_the_reader():
    assert TrueOrFalse(arrangement="rows").makes_rows and not TrueOrFalse().makes_rows


@pytest.mark.parametrize("pairings", [3, 5, 30])
def test_pairings_are_even_and_at_most_those_of_eight_pictures(pairings):
    with pytest.raises(ValidationError):
        ScenePairs(pairings=pairings)
    assert ScenePairs(pairings=28).pairings == 28


def test_a_form_has_a_known_name():
    with pytest.raises(ValidationError):
        SceneStatements(forms=["nothing"])
