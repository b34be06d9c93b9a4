"""Confidence intervals and p-values: bootstrap over examples, jackknife, approximate randomisation.

The bootstrap is for scores that are means over examples; the jackknife for other scores, and approximate
randomisation for the difference of two systems.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

import numpy as np

from ..examples import Example, Scores

BLOCKS = 20  # of the jackknife

Interval = tuple[float, float]
Score = TypeVar("Score", bound=Hashable)  # the name of a score


def groups_of(examples: Sequence[Example]) -> list[str]:
    """The group of each example: its group, its image or its id. Examples of a group are drawn together."""
    return [str(example.facts.get("group") or _image_of(example) or example.id) for example in examples]


def count_groups(groups: Sequence[str], values: Sequence[float | None]) -> int:
    """The number of groups with an example that has a value."""
    return len({group for group, value in zip(groups, values, strict=True) if value is not None})


def _image_of(example: Example) -> str | None:
    known = example.facts.get("image") or example.inputs.get("image")
    return known if isinstance(known, str) else None


def means_over_examples(scores: Scores) -> dict[str, Sequence[float | None]]:
    """The per-example values of the scores that are means of these values."""
    columns: dict[str, Sequence[float | None]] = {}
    for name, values in scores.per_example.items():
        value, known = scores.values.get(name), [score for score in values if score is not None]
        if value is not None and known and abs(fmean(known) - value) <= 1e-6 * max(1.0, abs(value)):
            columns[name] = values
    return columns


def bootstrap(
    columns: Mapping[str, Sequence[float | None]], groups: Sequence[str], resamples: int, seed: int
) -> dict[str, np.ndarray]:
    """Bootstrap means over examples, (resamples,) per column. Groups (images) are drawn with replacement, because
    questions about one image are not independent. Calls with the same groups and seed make the same draws. NaN if no
    example with a value was drawn. Columns with values in a single group are left out: they have no variance."""
    table = np.array(list(columns.values()), np.float64).T  # (examples, columns); None is NaN
    names, place = np.unique(np.array(groups), return_inverse=True)
    sums, counts = (np.zeros((len(names), table.shape[1])) for _ in range(2))
    np.add.at(sums, place, np.nan_to_num(table))
    np.add.at(counts, place, ~np.isnan(table))
    draw = np.random.default_rng(seed)
    means = []
    for _ in range(resamples):
        drawn = draw.integers(len(names), size=len(names))
        times = np.bincount(drawn, minlength=len(names)).astype(
            np.float64
        )  # draws per group, which avoids copies of rows
        with np.errstate(invalid="ignore"):
            means.append(times @ sums / (times @ counts))
    results = zip(columns, np.array(means).T, (counts > 0).sum(0), strict=True)
    return {name: column for name, column, group_count in results if group_count > 1 and not np.isnan(column).all()}


def resampled_means(scores: Scores, groups: Sequence[str], resamples: int) -> dict[str, np.ndarray]:
    """Bootstrap means, (resamples,) per column, of the scores that are means over examples with these groups."""
    columns = {name: values for name, values in means_over_examples(scores).items() if len(values) == len(groups)}
    return bootstrap(columns, groups, resamples, seed=0) if columns else {}


def interval(means: np.ndarray) -> Interval:
    """The middle 95 %."""
    low, high = np.nanpercentile(means, [2.5, 97.5])
    return float(low), float(high)


def probability(differences: np.ndarray, groups: int) -> float:
    """Two-sided p: twice the share of resampled differences on the other side of zero, but at least 1 / resamples and,
    with n groups, at least 2^(1-n)."""
    differences = differences[~np.isnan(differences)]
    share = min((differences <= 0).mean(), (differences >= 0).mean())
    return float(min(1.0, max(2 * share, 1 / len(differences), 2.0 ** (1 - groups))))


def jackknife(
    values: Callable[[Sequence[int]], Mapping[Score, float | None]], groups: Sequence[str], seed: int
) -> dict[Score, float]:
    """Standard errors of corpus-level scores, from leaving out each of BLOCKS random blocks of groups once.

    `values` scores the examples with the given indices. Empty if there are fewer groups than blocks.
    """
    names, place = np.unique(np.array(groups), return_inverse=True)
    if len(names) < BLOCKS:
        return {}
    block_of = (np.random.default_rng(seed).permutation(len(names)) % BLOCKS)[place]
    left = [values(np.flatnonzero(block_of != block).tolist()) for block in range(BLOCKS)]
    columns = {name: [value for scores in left if (value := scores.get(name)) is not None] for name in left[0]}
    complete = {name: column for name, column in columns.items() if len(column) == len(left)}
    return {name: float(np.sqrt((BLOCKS - 1) * np.var(column))) for name, column in complete.items()}


def around(value: float, error: float) -> Interval:
    """The two-sided 95 % interval by Student's t with BLOCKS - 1 degrees of freedom."""
    from scipy.special import stdtrit  # importing scipy.stats would take a second

    reach = float(stdtrit(BLOCKS - 1, 0.975)) * error
    return value - reach, value + reach


def jackknife_probability(value: float, error: float) -> float:
    """Two-sided p that a score with this standard error is zero: Student's t with BLOCKS - 1 degrees of freedom."""
    from scipy.special import stdtr

    if error == 0:
        return float(value == 0)
    return float(2 * stdtr(BLOCKS - 1, -abs(value) / error))


def randomisation(
    difference: Callable[[np.ndarray], Mapping[str, float | None]], groups: Sequence[str], rounds: int, seed: int
) -> dict[str, float]:
    """Two-sided p by approximate randomisation (Noreen, 1989; Riezler and Maxwell, 2005).

    `difference` swaps the systems' texts where its mask (examples,) is true, scores both systems and subtracts. Texts
    of one group are swapped together, each group with probability 1/2. p is the share of differences that are at least
    as large as the observed difference, which counts too; so p is at least 1 / (rounds + 1).
    """
    names, place = np.unique(np.array(groups), return_inverse=True)
    observed = {name: value for name, value in difference(np.zeros(len(place), bool)).items() if value is not None}
    hits = dict.fromkeys(observed, 1)
    draw = np.random.default_rng(seed)
    for _ in range(rounds):
        for name, value in difference((draw.random(len(names)) < 0.5)[place]).items():
            if name in hits:  # an undefined score of a shuffle counts as at least as large
                hits[name] += value is None or abs(value) >= abs(observed[name]) - 1e-9
    return {name: count / (rounds + 1) for name, count in hits.items()}
