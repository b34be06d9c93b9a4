"""How far a score can be trusted: bootstrap over examples; for scores that are no mean of examples the jackknife, and
approximate randomisation for the difference of two systems."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

import numpy as np

from ..tensors import Example, Scores

BLOCKS = 20  # of the jackknife

Interval = tuple[float, float]
Score = TypeVar("Score", bound=Hashable)  # what names one


def groups_of(examples: Sequence[Example]) -> list[str]:
    """What an example is drawn together with: its group, or its image."""
    return [str(example.facts.get("group") or _image(example) or example.id) for example in examples]


def _image(example: Example) -> str | None:
    known = example.facts.get("image") or example.inputs.get("image")
    return known if isinstance(known, str) else None


def means_over_examples(scores: Scores) -> dict[str, Sequence[float | None]]:
    """Scores that are the mean of what every example has that they are about."""
    columns: dict[str, Sequence[float | None]] = {}
    for name, values in scores.per_example.items():
        value, known = scores.values.get(name), [score for score in values if score is not None]
        if value is not None and known and abs(fmean(known) - value) <= 1e-6 * max(1.0, abs(value)):
            columns[name] = values
    return columns


def bootstrap(
    columns: Mapping[str, Sequence[float | None]], groups: Sequence[str], resamples: int, seed: int
) -> dict[str, np.ndarray]:
    """Means over examples whose groups (images) are drawn with replacement, (resamples,) a column; questions about one
    image are no independent witnesses. Every call with the same groups and seed sees the same draws. NaN where no
    example was drawn that a column is about. Without columns that are about one group alone: nothing varies there."""
    table = np.array(list(columns.values()), np.float64).T  # (examples, columns); None is NaN
    names, place = np.unique(np.array(groups), return_inverse=True)
    sums, counts = (np.zeros((len(names), table.shape[1])) for _ in range(2))
    np.add.at(sums, place, np.nan_to_num(table))
    np.add.at(counts, place, ~np.isnan(table))
    draw = np.random.default_rng(seed)
    means = []
    for _ in range(resamples):
        drawn = draw.integers(len(names), size=len(names))
        times = np.bincount(drawn, minlength=len(names)).astype(np.float64)  # how often each is drawn: no row is copied
        with np.errstate(invalid="ignore"):
            means.append(times @ sums / (times @ counts))
    results = zip(columns, np.array(means).T, (counts > 0).sum(0), strict=True)
    return {name: column for name, column, witnesses in results if witnesses > 1 and not np.isnan(column).all()}


def interval(means: np.ndarray) -> Interval:
    """The middle 95 %."""
    low, high = np.nanpercentile(means, [2.5, 97.5])
    return float(low), float(high)


def probability(differences: np.ndarray, groups: int) -> float:
    """Two-sided p: twice the share of resampled differences on the other side of zero. It is never below 1 / resamples.
    With n groups the smallest possible p is 2^(1-n)."""
    differences = differences[~np.isnan(differences)]
    share = min((differences <= 0).mean(), (differences >= 0).mean())
    return float(min(1.0, max(2 * share, 1 / len(differences), 2.0 ** (1 - groups))))


def jackknife(
    values: Callable[[Sequence[int]], Mapping[Score, float | None]], groups: Sequence[str], seed: int
) -> dict[Score, float]:
    """Standard errors of scores of a whole corpus, from leaving out each of BLOCKS random blocks of groups once.

    `values` scores the examples at these places. Nothing for fewer groups than blocks.
    """
    different, place = np.unique(np.array(groups), return_inverse=True)
    if len(different) < BLOCKS:
        return {}
    block_of = (np.random.default_rng(seed).permutation(len(different)) % BLOCKS)[place]
    left = [values(np.flatnonzero(block_of != block).tolist()) for block in range(BLOCKS)]
    columns = {name: [value for scores in left if (value := scores.get(name)) is not None] for name in left[0]}
    complete = {name: column for name, column in columns.items() if len(column) == len(left)}
    return {name: float(np.sqrt((BLOCKS - 1) * np.var(column))) for name, column in complete.items()}


def around(value: float, error: float) -> Interval:
    """The two-sided 95 % interval by Student's t with BLOCKS - 1 degrees of freedom."""
    from scipy.special import stdtrit  # scipy.stats has the same, and takes a second to import

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

    `difference` scores both systems with their texts exchanged where its mask (examples,) is true, and subtracts. Texts
    of one group are exchanged together, each group with probability 1/2; p is how often the difference is as large as
    the observed one, itself counted, so never below 1 / (rounds + 1).
    """
    names, place = np.unique(np.array(groups), return_inverse=True)
    observed = {name: value for name, value in difference(np.zeros(len(place), bool)).items() if value is not None}
    hits = dict.fromkeys(observed, 1)
    draw = np.random.default_rng(seed)
    for _ in range(rounds):
        for name, value in difference((draw.random(len(names)) < 0.5)[place]).items():
            if name in hits:  # a score that a shuffle leaves undefined counts as no smaller
                hits[name] += value is None or abs(value) >= abs(observed[name]) - 1e-9
    return {name: count / (rounds + 1) for name, count in hits.items()}
