"""Intervals and p-values: the bootstrap over images, and approximate randomisation."""

import itertools
import math

import numpy as np
import pytest
from kit.scoring import Words, examples

from mmgen.examples import Example, Scores
from mmgen.scoring import System, compare
from mmgen.scoring.intervals import (
    Summed,
    bootstrap,
    differences,
    groups_of,
    interval,
    means_over_examples,
    probability,
    randomisation,
    summed,
)


def means(values) -> list[Summed]:
    """A system whose only score is the mean of these values."""
    return summed(Scores({"x": float(np.mean(values))}, {"x": list(map(float, values))}), {}, len(values))


def ratio(values) -> list[Summed]:
    """A system with a corpus score: the sum of a first column, divided by that of a second."""
    return [Summed(np.array(values, float), lambda sums: {"ratio": sums[..., 0] / sums[..., 1]})]


def alone(count: int) -> list[str]:
    return [str(n) for n in range(count)]


@pytest.mark.slow
def test_the_bootstrap_has_the_right_coverage():
    """Of 200 samples of size 60 from a known mean, about 95 % of the intervals contain the mean."""
    draw = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        low, high = interval(bootstrap(means(draw.normal(5, 2, 60)), alone(60), 400, trial)["x"])
        hits += low <= 5 <= high
    assert 0.89 <= hits / 200 <= 0.985


def test_questions_of_one_image_are_drawn_together():
    values = means([0.0, 0.0, 0.0, 10.0, 10.0, 10.0] * 10)
    single = bootstrap(values, alone(60), 2000, 0)["x"]
    together = bootstrap(values, [str(n // 3) for n in range(60)], 2000, 0)["x"]
    assert together.std() / single.std() == pytest.approx(math.sqrt(3), rel=0.1)
    assert single.mean() == pytest.approx(5, abs=0.2)


def test_a_score_of_some_examples_is_resampled_over_these():
    values, groups = [50.0, None, 100.0, None, 0.0, None, None, 100.0], list("aabbccdd")
    scores = Scores({"x": 62.5, "y": 50.0}, {"x": values, "y": [None] * 8})
    assert means_over_examples(scores) == {"x": values}
    draw, expected = np.random.default_rng(3), []
    for _ in range(200):
        drawn = ["abcd"[place] for place in draw.integers(4, size=4)]
        expected.append(
            np.mean([v for group in drawn for g, v in zip(groups, values, strict=True) if g == group and v is not None])
        )
    assert bootstrap(summed(scores, {}, 8), groups, 200, 3)["x"] == pytest.approx(np.array(expected))
    rare = Scores({"x": 1.0, "one": 1.0}, {"x": [1.0, 1.0, *[None] * 6], "one": [1.0, *[None] * 7]})
    resampled = bootstrap(summed(rare, {}, 8), list("abcdefgh"), 200, 0)
    assert [*resampled] == ["x"] and np.isnan(resampled["x"]).any() and interval(resampled["x"]) == (1, 1)
    assert probability(resampled["x"], 2) == 0.5


def test_a_corpus_score_is_resampled_like_its_examples():
    rows, groups = np.random.default_rng(4).integers(1, 9, (12, 2)), list("aabbccddeeff")
    draw, expected = np.random.default_rng(0), []
    for _ in range(50):
        drawn = ["abcdef"[place] for place in draw.integers(6, size=6)]
        of_drawn = np.array([row for group in drawn for g, row in zip(groups, rows, strict=True) if g == group])
        expected.append(of_drawn[:, 0].sum() / of_drawn[:, 1].sum())
    assert bootstrap(ratio(rows), groups, 50)["ratio"] == pytest.approx(np.array(expected))


def test_examples_of_one_picture_are_drawn_together():
    facts = Example("q1", {"image": "9"}, facts={"group": "g"}), Example("q2", {"image": ("9", "8")}), Example("q3", {})
    assert groups_of([Example("q0", {"image": "9"}), *facts]) == ["9", "g", "q2", "q3"]


def test_a_probability_is_two_sided_and_at_least_one_over_the_resamples():
    assert probability(np.ones(1000), 40) == 0.001 and probability(np.array([-1.0, 1.0]), 40) == 1.0
    assert probability(np.array([-1.0] * 20 + [1.0] * 980), 40) == pytest.approx(0.04)


def test_few_pairs_are_never_significant():
    """Three pairs with equal differences: the exact sign test has p = 1/4, although all resamples agree."""
    assert [probability(np.ones(1000), groups) for groups in (1, 3, 6)] == [1.0, 0.25, 2**-5]
    comparison = compare([System("a", [["t0"]]), System("b", [["no"]])], examples(1), {"w": Words()})
    cell = comparison.table.of("difference")["difference"]["right"]
    assert (cell.value, cell.interval, cell.p) == (100, None, None)


def test_randomisation_is_the_permutation_test():
    """Against the p of all 64 swaps, one by one."""
    draw = np.random.default_rng(7)
    first, second = draw.integers(1, 9, (6, 2)), draw.integers(1, 9, (6, 2))

    def difference(swapped) -> float:
        left = np.where(np.array(swapped)[:, None], second, first).sum(0)
        right = np.where(np.array(swapped)[:, None], first, second).sum(0)
        return abs(left[0] / left[1] - right[0] / right[1])

    observed = difference([False] * 6)
    exact = np.mean([difference(swapped) >= observed - 1e-9 for swapped in itertools.product([False, True], repeat=6)])
    ((name, p),) = randomisation([ratio(first)], [ratio(second)], alone(6), 8000)
    assert name == "ratio" and p == pytest.approx(exact, abs=0.02)
    assert dict(randomisation([ratio(first)], [ratio(first)], alone(6), 9)) == {"ratio": 1.0}


def test_groups_are_swapped_together():
    better = [ratio([(1, 1)] * 6)], [ratio([(0, 1)] * 6)]
    ((_, together),) = randomisation(*better, list("aabbcc"), 4000)
    assert together == pytest.approx(2 / 8, abs=0.025)  # three independent groups, not six


def test_randomisation_has_the_stated_error_rate():
    draw = np.random.default_rng(5)
    systems = [[[ratio(np.stack([draw.normal(5, 1, 40), np.ones(40)], 1))] for _ in range(2)] for _ in range(200)]
    p = [dict(randomisation(first, second, alone(40), 99, n))["ratio"] for n, (first, second) in enumerate(systems)]
    assert 2 <= sum(value <= 0.05 for value in p) <= 20


def test_differences_are_paired_and_over_seeds():
    values = np.random.default_rng(6).normal(5, 3, 50)
    (span, p) = differences([means(values + 1)], [means(values)], alone(50))["x"]
    assert span == pytest.approx((1, 1)) and p == 0.001  # example by example
    seeds = [[means(values + 1), means(values + 3)], [means(values)]]
    (low, high), _ = differences(*seeds, alone(50))["x"]
    assert low == pytest.approx(1) and high == pytest.approx(3)  # of the two seeds, two, one or none are drawn
    assert differences([means(values)], [means(values)], ["one"] * 50) == {}
