"""Intervals and p-values: the bootstrap over images, and approximate randomisation."""

import itertools

import numpy as np
import pytest
from mmgen_metrics import CaptionScores
from mmgen_metrics.scoring.systems import compare

from mmgen.examples import Example, Scores
from mmgen.scoring.intervals import (
    Summed,
    bootstrap,
    differences,
    groups_of,
    interval,
    probability,
    randomisation,
    summed,
)


def means(values, groups=None) -> dict[str, Summed]:
    """A system whose only score is the mean of these values."""
    known = [float(value) for value in values if value is not None]
    return summed(Scores({"x": float(np.mean(known))}, {"x": list(values)}), {}, groups or alone(len(values)))


class Ratio:
    """A metric with a corpus score: the sum of a first column, divided by that of a second."""

    @staticmethod
    def of_sums(name, sums):
        return {"ratio": sums[..., 0] / sums[..., 1]}


def ratio(rows, groups=None) -> dict[str, Summed]:
    left, right = np.array(rows, float).sum(0)
    return summed(Scores({"ratio": left / right}, sums={"m/r": rows}), {"m": Ratio}, groups or alone(len(rows)))


def alone(count: int) -> list[str]:
    return [str(n) for n in range(count)]


@pytest.mark.slow
def test_the_bootstrap_has_the_right_coverage():
    """Of 200 samples of size 60 from a known mean, about 95 % of the intervals contain the mean."""
    draw = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        low, high = interval(bootstrap(means(draw.normal(5, 2, 60)), 400, trial)["x"])
        hits += low <= 5 <= high
    assert 0.89 <= hits / 200 <= 0.985


def test_a_score_of_some_examples_is_resampled_over_these():
    values, groups = [50.0, None, 100.0, None, 0.0, None, None, 100.0], list("aabbccdd")
    draw, expected = np.random.default_rng(3), []
    for _ in range(200):
        drawn = ["abcd"[place] for place in draw.integers(4, size=4)]
        expected.append(
            np.mean([v for group in drawn for g, v in zip(groups, values, strict=True) if g == group and v is not None])
        )
    assert bootstrap(means(values, groups), 200, 3)["x"] == pytest.approx(np.array(expected))
    rare = bootstrap(means([1.0, 1.0, *[None] * 6]), 200, 0)["x"]
    assert np.isnan(rare).any() and interval(rare) == (1, 1) and probability(rare, 2) == 0.5


def test_only_scores_that_follow_from_sums_have_parts():
    """A mean that is not the score, such as METEOR's of examples, and sums of a wrong width do not give it."""
    scores = Scores({"a": 2.0, "b": 5.0, "none": None, "m.ratio": 3.0}, {"a": [1.0, 3.0], "b": [1.0, 3.0]})
    assert summed(scores, {}, ["1", "2"]).keys() == {"a"}
    wide = Scores(scores.values, sums={"m/r": [[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]]})
    assert not summed(wide, {"m": Ratio}, ["1", "2"])
    right = Scores(scores.values, sums={"m/r": [[3.0, 1.0], [9.0, 3.0]]})
    assert summed(right, {"m": Ratio}, ["1", "2"]).keys() == {"m.ratio"}  # another metric has a ratio, too


def test_a_corpus_score_is_resampled_like_its_examples():
    rows, groups = np.random.default_rng(4).integers(1, 9, (12, 2)), list("aabbccddeeff")
    draw, expected = np.random.default_rng(0), []
    for _ in range(50):
        drawn = ["abcdef"[place] for place in draw.integers(6, size=6)]
        of_drawn = np.array([row for group in drawn for g, row in zip(groups, rows, strict=True) if g == group])
        expected.append(of_drawn[:, 0].sum() / of_drawn[:, 1].sum())
    assert bootstrap(ratio(rows, groups), 50)["ratio"] == pytest.approx(np.array(expected))


def test_examples_of_one_picture_are_drawn_together():
    facts = Example("q1", {"image": "9"}, facts={"group": "g"}), Example("q2", {"image": ("9", "8")}), Example("q3", {})
    assert groups_of([Example("q0", {"image": "9"}), *facts]) == ["9", "g", "q2", "q3"]


def test_a_probability_is_two_sided_and_at_least_one_over_the_resamples():
    assert probability(np.ones(1000), 40) == 0.001 and probability(np.array([-1.0, 1.0]), 40) == 1.0
    assert probability(np.array([-1.0] * 20 + [1.0] * 980), 40) == pytest.approx(0.04)


def test_few_pairs_are_never_significant():
    """Three pairs with equal differences: the exact sign test has p = 1/4, although all resamples agree."""
    assert [probability(np.ones(1000), groups) for groups in (1, 3, 6)] == [1.0, 0.25, 2**-5]
    metric = {"m": CaptionScores(meteor=False, tokenizer="own")}
    table, _ = compare({"a": ["why"], "b": ["who"]}, [Example("1", {}, ("why",))], metric)
    cell = table.of("difference")["difference"]["BLEU-1"]
    assert (cell.value, cell.interval, cell.p) == (pytest.approx(100), None, None)


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
    assert randomisation([(ratio(first)["ratio"], ratio(second)["ratio"])], 8000) == pytest.approx(exact, abs=0.02)
    assert randomisation([(ratio(first)["ratio"], ratio(first)["ratio"])], 9) == 1


def test_groups_are_swapped_together():
    better, worse = (ratio([row] * 6, list("aabbcc"))["ratio"] for row in ((1, 1), (0, 1)))
    assert randomisation([(better, worse)], 4000) == pytest.approx(2 / 8, abs=0.025)  # three groups, not six


def test_differences_are_paired_and_over_seeds():
    values = np.random.default_rng(6).normal(5, 3, 50)
    (span, p) = differences([means(values + 1)], [means(values)])["x"]
    assert span == pytest.approx((1, 1)) and p == 0.001  # example by example
    (low, high), _ = differences([means(values + 1), means(values + 3)], [means(values)])["x"]
    assert low == pytest.approx(1) and high == pytest.approx(3)  # of the two seeds, two, one or none are drawn
    assert differences([means(values, ["one"] * 50)], [means(values, ["one"] * 50)]) == {}
    other = {"y": Summed(np.ones((50, 3)), lambda sums: sums[..., 0], False), **means(values)}
    assert differences([other], [means(values)]).keys() == {"x"}  # whatever else a system has
