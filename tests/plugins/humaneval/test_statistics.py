"""Agreement and significance, against numbers known from elsewhere."""

import numpy as np
import pytest
from kit.humaneval import answer, write
from mmgen_humaneval.statistics import alpha, evaluate, format_result, paired
from mmgen_humaneval.statistics import read_answers as read


@pytest.mark.slow
def test_means_spread_and_t_tests_by_hand(key, tmp_path):
    """Model 1 2 3 5, human 4 4 5 5 by one judge; 3 2 3 3 and 4 4 5 3 by the other: means 2 2 3 4 and 4 4 5 4."""
    sheets = [
        write(tmp_path / "a.json", answer("first", [1, 4, 2, 4, 3, 5, 5])),
        write(tmp_path / "b.json", answer("second", [3, 4, 2, 4, 3, 5, 3])),
    ]
    result = evaluate(read(key, sheets))
    model, human = result.systems["model"]["readability"], result.systems["human"]["readability"]
    assert (model.mean, human.mean, model.pictures) == (2.75, 4.25, 4)
    assert model.deviation == pytest.approx(np.sqrt((0.75**2 * 2 + 0.25**2 + 1.25**2) / 3))
    assert model.difference == -1.5 and human.p is None
    # differences -2 -2 -2 0: mean -1.5, deviation 1, t = -3 with 3 degrees of freedom
    assert model.p == pytest.approx(0.0577, abs=5e-5)
    low, high = model.interval
    assert (low, high) == pytest.approx((-1.5 - 3.1824 * 0.5, -1.5 + 3.1824 * 0.5), abs=1e-3)
    assert result.judges == {
        name: {"readability": (24 / 7, result.agreement["readability"])} for name in ("first", "second")
    }


@pytest.mark.slow
def test_a_star_marks_significance_and_one_judge_has_no_agreement(key, tmp_path):
    far = evaluate(read(key, [write(tmp_path / "a.json", answer("first", [1, 5, 1, 5, 1, 4, None]))], partial=True))
    lines = list(format_result(far))
    assert "1.00 ± 0.00*" in lines[2] and " ± " in lines[3] and "*" not in lines[3]
    assert far.agreement == {"readability": None}
    assert lines[-1] == "missing ratings: 1; a difference counts only judges who rated both questions"


NO = np.nan
PUBLISHED = [  # Krippendorff (2011), section C: four observers, twelve units
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3],
    [NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO],
]


def test_alpha_is_the_published_one():
    assert alpha(np.array(PUBLISHED)) == pytest.approx(0.815, abs=5e-4)


@pytest.mark.slow  # imports scipy's statistics
def test_differences_without_variance_have_their_p():
    assert paired(np.zeros(5)) == ((0.0, 0.0), 1.0)
    assert paired(np.full(5, 1 / 3)) == (pytest.approx((1 / 3, 1 / 3)), 0.0)
    assert paired(np.array([1.0])) == (None, None)
