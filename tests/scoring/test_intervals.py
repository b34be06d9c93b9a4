"""Intervals and p-values: the bootstrap, the jackknife and randomisation."""

import math

import numpy as np
import pytest
from kit.scoring import Words, examples

from mmgen.examples import Example, Scores
from mmgen.scoring import System, compare
from mmgen.scoring.intervals import (
    around,
    bootstrap,
    groups_of,
    interval,
    jackknife,
    jackknife_probability,
    means_over_examples,
    probability,
    randomisation,
)


@pytest.mark.slow
def test_the_bootstrap_has_the_right_coverage():
    """Of 200 samples of size 60 from a known mean, about 95 % of the intervals contain the mean."""
    draw = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        low, high = interval(bootstrap({"x": draw.normal(5, 2, 60)}, [str(n) for n in range(60)], 400, trial)["x"])
        hits += low <= 5 <= high
    assert 0.89 <= hits / 200 <= 0.985


def test_questions_of_one_image_are_drawn_together():
    values = {"x": [0.0, 0.0, 0.0, 10.0, 10.0, 10.0] * 10}
    alone = bootstrap(values, [str(n) for n in range(60)], 2000, 0)["x"]
    together = bootstrap(values, [str(n // 3) for n in range(60)], 2000, 0)["x"]
    assert together.std() / alone.std() == pytest.approx(math.sqrt(3), rel=0.1)
    assert alone.mean() == pytest.approx(5, abs=0.2)


def test_a_score_of_some_examples_is_resampled_over_these():
    values, groups = [50.0, None, 100.0, None, 0.0, None, None, 100.0], list("aabbccdd")
    scores = Scores({"x": 62.5, "y": 50.0}, {"x": values, "y": [None] * 8})
    assert means_over_examples(scores) == {"x": values}
    draw, means = np.random.default_rng(3), []
    for _ in range(200):
        drawn = ["abcd"[place] for place in draw.integers(4, size=4)]
        means.append(
            np.mean([v for group in drawn for g, v in zip(groups, values, strict=True) if g == group and v is not None])
        )
    assert bootstrap({"x": values}, groups, 200, 3)["x"] == pytest.approx(np.array(means))
    rare = bootstrap({"x": [1.0, 1.0, *[None] * 6], "one": [1.0, *[None] * 7]}, list("abcdefgh"), 200, 0)
    assert [*rare] == ["x"] and np.isnan(rare["x"]).any() and interval(rare["x"]) == (1, 1)
    assert probability(rare["x"], 2) == 0.5


def test_examples_of_one_picture_are_drawn_together():
    facts = Example("q1", {"image": "9"}, facts={"group": "g"}), Example("q2", {"image": ("9", "8")}), Example("q3", {})
    assert groups_of([Example("q0", {"image": "9"}), *facts]) == ["9", "g", "q2", "q3"]


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(2).normal(0, 3, 2000)
    error = jackknife(
        lambda places: {"mean": float(values[places].mean()), "none": None}, [str(n) for n in range(2000)], 0
    )
    assert error.keys() == {"mean"} and error["mean"] == pytest.approx(3 / math.sqrt(2000), rel=0.35)
    assert around(1.0, 0.1) == pytest.approx((1 - 0.209302405, 1 + 0.209302405))
    assert jackknife(lambda places: {}, ["few"] * 40, 0) == {}


def test_a_probability_is_two_sided_and_at_least_one_over_the_resamples():
    assert probability(np.ones(1000), 40) == 0.001 and probability(np.array([-1.0, 1.0]), 40) == 1.0
    assert probability(np.array([-1.0] * 20 + [1.0] * 980), 40) == pytest.approx(0.04)


def test_few_pairs_are_never_significant():
    """Three pairs with equal differences: the exact sign test has p = 1/4, although all resamples agree."""
    assert [probability(np.ones(1000), groups) for groups in (1, 3, 6)] == [1.0, 0.25, 2**-5]
    comparison = compare([System("a", [["t0"]]), System("b", [["no"]])], examples(1), {"w": Words()})
    assert comparison.intervals == {} == comparison.probabilities and comparison.values["difference"]["right"] == 100


def test_the_jackknifes_p_is_students():
    assert jackknife_probability(2.093, 1.0) == pytest.approx(0.05, abs=1e-4) == jackknife_probability(-2.093, 1.0)
    assert jackknife_probability(0.0, 0.0) == 1.0 and jackknife_probability(1.0, 0.0) == 0.0


def differences(first, second):
    """A difference of means in the form that `randomisation` takes."""
    first, second = np.array(first, float), np.array(second, float)
    return lambda swapped: {"mean": float(np.where(swapped, second - first, first - second).mean()), "none": None}


def test_randomisation_is_the_permutation_test():
    """Differences 1 2 3 4 5 6: 2 of the 64 swaps are as extreme. Differences 1 1 1 1 1 -1: 14 of 64."""
    groups = [str(n) for n in range(6)]
    probabilities = randomisation(differences([1, 2, 3, 4, 5, 6], [0] * 6), groups, 8000, 0)
    assert probabilities.keys() == {"mean"} and probabilities["mean"] == pytest.approx(2 / 64, abs=0.006)
    assert randomisation(differences([1, 1, 1, 1, 1, -1], [0] * 6), groups, 8000, 1)["mean"] == pytest.approx(
        14 / 64, abs=0.02
    )
    together = randomisation(differences([1] * 6, [0] * 6), list("aabbcc"), 4000, 0)[
        "mean"
    ]  # three independent groups, not six
    assert together == pytest.approx(2 / 8, abs=0.025)
    assert randomisation(differences([1], [1]), ["a"], 9, 0)["mean"] == 1.0


def test_randomisation_has_the_stated_error_rate():
    draw = np.random.default_rng(5)
    probabilities = [
        randomisation(differences(draw.normal(size=40), draw.normal(size=40)), [str(n) for n in range(40)], 99, n)[
            "mean"
        ]
        for n in range(200)
    ]
    assert 2 <= sum(p <= 0.05 for p in probabilities) <= 20
