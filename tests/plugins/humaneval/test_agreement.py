"""Agreement of judges and paired differences, against published numbers."""

import numpy as np
import pytest
from mmgen_humaneval.agreement import alpha
from mmgen_humaneval.statistics import paired, unpaired

NO = np.nan
PUBLISHED = [  # Krippendorff (2011), section C: four observers, twelve units
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3],
    [NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO],
]


def test_alpha_is_the_published_one():
    assert alpha(np.array(PUBLISHED)) == pytest.approx(0.815, abs=5e-4)


def test_alpha_of_perfect_of_random_and_of_no_agreement():
    draw = np.random.default_rng(0)
    same = draw.integers(1, 6, 200).astype(float)
    assert alpha(np.array([same, same])) == 1.0
    assert abs(alpha(draw.integers(1, 6, (3, 2000)).astype(float))) < 0.03
    assert alpha(np.array([same, 6 - same])) < -0.9
    assert alpha(np.ones((2, 5))) is None and alpha(np.array([[1.0, 2.0]])) is None


@pytest.mark.slow  # imports scipy's statistics
def test_differences_without_variance_have_their_p():
    assert paired(np.zeros(5)) == ((0.0, 0.0), 1.0)
    assert paired(np.full(5, 1 / 3)) == (pytest.approx((1 / 3, 1 / 3)), 0.0)
    assert paired(np.array([1.0])) == (None, None) and unpaired(np.array([1.0]), np.ones(3)) is None
    assert unpaired(np.ones(3), np.ones(4)) == 1.0


@pytest.mark.slow
def test_the_paired_test_is_right_as_often_as_it_says():
    """Of 400 samples without a difference, p is below 0.05 in about 5 %."""
    draw = np.random.default_rng(3)
    low = sum(paired(draw.normal(0, 1, 50))[1] < 0.05 for _ in range(400))
    assert 8 <= low <= 34
