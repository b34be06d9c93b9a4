"""Human evaluation: blind sheets, the files that a browser saves from them, and their numbers checked by hand."""

import numpy as np
import pytest
from kit.humaneval import answer, write
from mmgen_humaneval.answers import read
from mmgen_humaneval.statistics import evaluate, format_result

pytestmark = pytest.mark.slow


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
    # Welch: variances 11/12 and 1/4, t = -1.5 / sqrt(7/24) = -2.7775 with 4.52 degrees of freedom
    assert model.p_unpaired == pytest.approx(0.0435, abs=5e-4)
    assert result.judges == {"first": {"readability": 24 / 7}, "second": {"readability": 24 / 7}}


def test_a_star_marks_significance_and_one_judge_has_no_agreement(key, tmp_path):
    result = evaluate(read(key, [write(tmp_path / "a.json", answer("first", [1, 5, 1, 5, 1, 5, 5]))]))
    assert result.systems["model"]["readability"].p == pytest.approx(0.0577, abs=5e-5)
    far = evaluate(read(key, [write(tmp_path / "a.json", answer("first", [1, 5, 1, 5, 1, 4, None]))], partial=True))
    lines = list(format_result(far))
    assert "1.00 ± 0.00*" in lines[2] and " ± " in lines[3] and "*" not in lines[3]
    assert "agreement, Krippendorff's alpha (ordinal): readability -; needs two judges" in lines
    assert lines[-1] == "missing ratings: 1; a difference counts only judges who rated both questions"


def test_with_missing_ratings_a_difference_is_of_judges_who_gave_both(key, tmp_path):
    sheets = [
        write(tmp_path / "a.json", answer("first", [1, 3, 1, 3, 1, 4, 2])),
        write(tmp_path / "b.json", answer("second", [5, None, 1, 3, 1, 4, 2])),
    ]
    cell = evaluate(read(key, sheets, partial=True)).systems["model"]["readability"]
    assert cell.difference == pytest.approx((-2 - 2 - 3 + 0) / 4) and cell.mean == pytest.approx((3 + 1 + 1 + 2) / 4)
