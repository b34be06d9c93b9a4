"""Confidence intervals and p-values: the bootstrap over images, approximate randomisation.

Both need a score as a function of sums over examples. A mean is one, and so are corpus scores such as BLEU and METEOR
(`configs.MetricConfig.of_sums`). Other scores, such as self-BLEU, have neither interval nor p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..configs import MetricConfig
from ..examples import Example, Scores

RESAMPLES = 1000  # of the bootstrap, and shuffles of the randomisation

Interval = tuple[float, float]
Score = Callable[[np.ndarray], np.ndarray]  # sums (..., K) -> values (...)


@dataclass(frozen=True)
class Summed:
    """A score that is a function of sums over examples.

    sums   (G, K) of the examples of each group
    score  sums (..., K) -> its values (...)
    mean   whether it is a mean over examples
    """

    sums: np.ndarray
    score: Score
    mean: bool


System = Mapping[str, Summed]  # column -> score, of one system or of one of its seeds


def names_of(example: Example) -> list[str]:
    """The names of an example in files: its group, its image, its id."""
    names = (example.facts.get("group"), example.facts.get("image"), example.inputs.get("image"), example.id)
    return [str(name) for name in names if isinstance(name, str | int)]


def groups_of(examples: Sequence[Example]) -> list[str]:
    """The group of each example: its group, its image or its id. Examples of a group are drawn together."""
    return [names_of(example)[0] for example in examples]


def summed(scores: Scores, metrics: Mapping[str, MetricConfig], groups: Sequence[str]) -> dict[str, Summed]:
    """The scores that follow from sums over the examples, whose groups these are: corpus scores and means. A score that
    differs from what all sums give follows from something else, and is left out."""
    names, places = np.unique(np.array(groups), return_inverse=True)
    system: dict[str, Summed] = {}

    def add(column: str, rows: np.ndarray, score: Score, mean: bool) -> None:
        if len(rows) == len(groups) and np.isclose(score(rows.sum(0)), scores.values.get(column) or 0.0, 1e-6, 1e-6):
            sums = np.zeros((len(names), rows.shape[1]))
            np.add.at(sums, places, rows)
            system.setdefault(column, Summed(sums, score, mean))

    for key, values in scores.sums.items():
        metric, _, name = key.partition("/")
        rows = np.array(values, np.float64)
        for column in metrics[metric].of_sums(name, rows.sum(0)) if metric in metrics else ():
            named = column if column in scores.values else f"{metric}.{column}"
            add(named, rows, partial(_corpus, metrics[metric], name, column), False)
    for column, of_examples in scores.per_example.items():
        row = np.array(of_examples, np.float64)  # NaN: the example has no value
        add(column, np.stack([np.nan_to_num(row), ~np.isnan(row)], 1), _mean, True)
    return system


def _corpus(config: MetricConfig, name: str, column: str, sums: np.ndarray) -> np.ndarray:
    return config.of_sums(name, sums)[column]


def _mean(sums: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # NaN: no example has a value
        means: np.ndarray = sums[..., 0] / sums[..., 1]
        return means


def bootstrap(system: System, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, np.ndarray]:
    """Every column over resampled groups, (resamples,). Groups (images) are drawn with replacement, because questions
    about one image are not independent. Systems with the same groups get the same draws for a seed, so differences are
    paired. NaN if no example with a value was drawn. Empty for a single group."""
    count = len(next(iter(system.values())).sums) if system else 0
    if count < 2 or not resamples:
        return {}
    draw, resampled = np.random.default_rng(seed), list[list[np.ndarray]]()
    for _ in range(resamples):
        times = np.bincount(draw.integers(count, size=count), minlength=count)  # per group, which copies no rows
        resampled.append([times.astype(np.float64) @ part.sums for part in system.values()])
    drawn = map(np.array, zip(*resampled, strict=True))
    return {column: part.score(sums) for (column, part), sums in zip(system.items(), drawn, strict=True)}


def interval(values: np.ndarray) -> Interval:
    """The middle 95 %."""
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def intervals(
    scores: Scores,
    metrics: Mapping[str, MetricConfig],
    groups: Sequence[str],
    resamples: int = RESAMPLES,
) -> dict[str, Interval]:
    """Column -> its interval over these groups; none for a column whose values are all equal."""
    resampled = bootstrap(summed(scores, metrics, groups), resamples)
    return {column: span for column, values in resampled.items() if (span := interval(values))[0] < span[1]}


def differences(
    first: Sequence[System], second: Sequence[System], resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, tuple[Interval, float]]:
    """Column -> interval and p of the difference, first minus second, of two systems on the same examples. Each system
    is a list of its seeds, whose mean counts. Both are resampled over the same groups (paired), and each over its
    seeds. The p of a mean is the bootstrap's, that of a corpus score approximate randomisation's."""
    drawn = [[bootstrap(of_seed, resamples, seed) for of_seed in system] for system in (first, second)]
    results = {}
    for column in drawn[0][0]:
        pairs = [(one.get(column), other.get(column)) for one in first for other in second]
        if all(one and other and one.sums.shape == other.sums.shape for one, other in pairs):
            ours, theirs = (_over_seeds([of_seed[column] for of_seed in drawn[run]], run) for run in (0, 1))
            score = first[0][column]
            if score.mean:
                p = probability(ours - theirs, int(score.sums.any(1).sum()))
            else:
                p = randomisation(
                    [(one[column], other[column]) for one, other in zip(first, second, strict=False)], resamples, seed
                )
            results[column] = interval(ours - theirs), p
    return results


def _over_seeds(columns: Sequence[np.ndarray], run: int) -> np.ndarray:
    """(resamples,) means over seeds drawn with replacement, independently of the other run."""
    size = (len(columns), len(columns[0]))
    seeds = np.random.default_rng(run).integers(len(columns), size=size)
    means: np.ndarray = np.take_along_axis(np.array(columns), seeds, 0).mean(0)
    return means


def probability(differences: np.ndarray, groups: int) -> float:
    """Two-sided p: twice the share of resampled differences on the other side of zero, but at least 1 / resamples and,
    with n groups, at least 2^(1-n)."""
    differences = differences[~np.isnan(differences)]
    share = min((differences <= 0).mean(), (differences >= 0).mean())
    return float(min(1.0, max(2 * share, 1 / len(differences), 2.0 ** (1 - groups))))


def randomisation(pairs: Sequence[tuple[Summed, Summed]], shuffles: int = RESAMPLES, seed: int = 0) -> float:
    """The two-sided p of a corpus score's difference, by approximate randomisation (Noreen, 1989; Riezler and Maxwell,
    2005): the systems' outputs are swapped, those of one group together and in all pairs of seeds, each group with
    probability 1/2. p is the share of differences that are at least as large as the observed one, which counts too; so
    p is at least 1 / (shuffles + 1)."""
    count = len(pairs[0][0].sums)
    swapped = np.random.default_rng(seed).random((shuffles, count)) < 0.5
    masks = np.vstack([np.zeros((1, count)), swapped])  # the first is what was observed
    deltas = []
    for left, right in pairs:
        moved = masks @ (right.sums - left.sums)
        deltas.append(left.score(left.sums.sum(0) + moved) - right.score(right.sums.sum(0) - moved))
    sizes = np.abs(np.mean(deltas, 0))
    return float((sizes >= sizes[0] - 1e-9).sum() / (shuffles + 1))
