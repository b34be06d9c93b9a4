"""Confidence intervals and p-values: the bootstrap over images, approximate randomisation.

Both need a score as a function of sums over examples. A mean is one, and so are corpus scores such as BLEU and METEOR
(`configs.MetricConfig.of_sums`). Other scores, such as self-BLEU, have neither interval nor p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ..configs import MetricConfig
from ..examples import Example, Scores

RESAMPLES = 1000  # of the bootstrap, and shuffles of the randomisation

Interval = tuple[float, float]


@dataclass(frozen=True)
class Summed:
    """Scores that are functions of sums over examples.

    rows    (examples, K) what is summed
    scores  sums (..., K) -> column -> its values (...)
    mean    the only column, if it is a mean over examples; else ""
    """

    rows: np.ndarray
    scores: Callable[[np.ndarray], Mapping[str, np.ndarray]]
    mean: str = ""


def summed(scores: Scores, metrics: Mapping[str, MetricConfig], count: int) -> list[Summed]:
    """All columns of `scores`, of `count` examples, that follow from sums: means over examples, and the corpus scores
    of the metrics."""
    means = {name: values for name, values in means_over_examples(scores).items() if len(values) == count}
    corpus = {*scores.values} - {*means}
    found = [_mean(name, np.array(values, np.float64)) for name, values in means.items()]
    for key, rows in scores.sums.items():
        metric, _, name = key.partition("/")
        if metric in metrics and len(rows) == count:
            found.append(_corpus(metric, metrics[metric], name, np.array(rows, np.float64), corpus))
    return found


def _mean(name: str, values: np.ndarray) -> Summed:
    """The mean of (examples,) values; NaN: the example has none."""
    known = ~np.isnan(values)

    def scores(sums: np.ndarray) -> dict[str, np.ndarray]:
        with np.errstate(invalid="ignore"):
            return {name: sums[..., 0] / sums[..., 1]}

    return Summed(np.stack([np.nan_to_num(values), known], 1), scores, name)


def _corpus(metric: str, config: MetricConfig, name: str, rows: np.ndarray, columns: set[str]) -> Summed:
    """The corpus scores of a metric, under the names that they have among `columns`."""

    def scores(sums: np.ndarray) -> dict[str, np.ndarray]:
        found = {
            column if column in columns else f"{metric}.{column}": values
            for column, values in config.of_sums(name, sums).items()
        }
        return {column: values for column, values in found.items() if column in columns}

    return Summed(rows, scores)


def groups_of(examples: Sequence[Example]) -> list[str]:
    """The group of each example: its group, its image or its id. Examples of a group are drawn together."""
    return [str(example.facts.get("group") or _image_of(example) or example.id) for example in examples]


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
    system: Sequence[Summed], groups: Sequence[str], resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, np.ndarray]:
    """Every column over resampled examples, (resamples,). Groups (images) are drawn with replacement, because questions
    about one image are not independent. Calls with the same groups and seed make the same draws, so differences are
    paired. NaN if no example with a value was drawn. A column with values in a single group is left out: it has no
    variance."""
    if not system:
        return {}
    widths = np.cumsum([part.rows.shape[1] for part in system])[:-1]
    sums = _sums_by_group(np.hstack([part.rows for part in system]), groups)
    draw, resampled = np.random.default_rng(seed), []
    for _ in range(resamples):
        # draws per group, which avoids copies of rows
        times = np.bincount(draw.integers(len(sums), size=len(sums)), minlength=len(sums))
        resampled.append(times.astype(np.float64) @ sums)
    return {
        name: values
        for part, of_groups, drawn in zip(
            system, np.split(sums, widths, 1), np.split(np.array(resampled), widths, 1), strict=True
        )
        if of_groups.any(1).sum() > 1
        for name, values in part.scores(drawn).items()
        if not np.isnan(values).all()
    }


def _sums_by_group(rows: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """(G, K) the sums of each group's rows."""
    names, place = np.unique(np.array(groups), return_inverse=True)
    sums = np.zeros((len(names), rows.shape[1]))
    np.add.at(sums, place, rows)
    return sums


def interval(means: np.ndarray) -> Interval:
    """The middle 95 %."""
    low, high = np.nanpercentile(means, [2.5, 97.5])
    return float(low), float(high)


def intervals(
    scores: Scores,
    metrics: Mapping[str, MetricConfig],
    groups: Sequence[str],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Interval]:
    """Column -> its interval over these groups; none for a column whose values are all equal."""
    if len(set(groups)) < 2 or not resamples:
        return {}
    resampled = bootstrap(summed(scores, metrics, len(groups)), groups, resamples, seed)
    return {name: span for name, values in resampled.items() if (span := interval(values))[0] < span[1]}


def differences(
    first: Sequence[Sequence[Summed]],
    second: Sequence[Sequence[Summed]],
    groups: Sequence[str],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, tuple[Interval, float]]:
    """Column -> interval and p of the difference, first minus second, of two systems on the same examples. Each system
    is a list of its seeds, whose mean counts. Both are resampled over the same groups (paired), and each over its
    seeds. The p of a mean is the bootstrap's, that of a corpus score approximate randomisation's."""
    if len(set(groups)) < 2 or not resamples:
        return {}
    resampled = [[bootstrap(of_seed, groups, resamples, seed) for of_seed in system] for system in (first, second)]
    corpus = dict(randomisation(first, second, groups, resamples, seed))
    found = {}
    for name in resampled[0][0]:
        columns = [[of_seed[name] for of_seed in system if name in of_seed] for system in resampled]
        if [*map(len, columns)] == [len(first), len(second)]:
            deltas = _over_seeds(columns[0], 0) - _over_seeds(columns[1], 1)
            p = corpus[name] if name in corpus else probability(deltas, _groups_with_values(first[0], name, groups))
            found[name] = interval(deltas), p
    return found


def _over_seeds(columns: Sequence[np.ndarray], run: int) -> np.ndarray:
    """(resamples,) means over seeds drawn with replacement, independently of the other run."""
    size = (len(columns), len(columns[0]))
    seeds = np.random.default_rng(run).integers(len(columns), size=size)
    means: np.ndarray = np.take_along_axis(np.array(columns), seeds, 0).mean(0)
    return means


def _groups_with_values(system: Sequence[Summed], name: str, groups: Sequence[str]) -> int:
    rows = next(part.rows for part in system if part.mean == name)
    return int(_sums_by_group(rows, groups)[:, 1].astype(bool).sum())


def probability(differences: np.ndarray, groups: int) -> float:
    """Two-sided p: twice the share of resampled differences on the other side of zero, but at least 1 / resamples and,
    with n groups, at least 2^(1-n)."""
    differences = differences[~np.isnan(differences)]
    share = min((differences <= 0).mean(), (differences >= 0).mean())
    return float(min(1.0, max(2 * share, 1 / len(differences), 2.0 ** (1 - groups))))


def randomisation(
    first: Sequence[Sequence[Summed]],
    second: Sequence[Sequence[Summed]],
    groups: Sequence[str],
    shuffles: int = RESAMPLES,
    seed: int = 0,
) -> Iterator[tuple[str, float]]:
    """The two-sided p of every corpus score's difference, by approximate randomisation (Noreen, 1989; Riezler and
    Maxwell, 2005): the systems' outputs are swapped, those of one group together and in all pairs of seeds, each group
    with probability 1/2. p is the share of differences that are at least as large as the observed one, which counts
    too; so p is at least 1 / (shuffles + 1)."""
    count = len(set(groups))
    swapped = np.random.default_rng(seed).random((shuffles, count)) < 0.5
    masks = np.vstack([np.zeros((1, count)), swapped]).astype(np.float64)  # the first is what was observed
    deltas: dict[str, list[np.ndarray]] = {}
    for of_first, of_second in zip(first, second, strict=False):
        for ours, theirs in zip(of_first, of_second, strict=True):
            if ours.mean:
                continue
            left, right = (_sums_by_group(part.rows, groups) for part in (ours, theirs))
            moved = masks @ (right - left)
            shuffled = ours.scores(left.sum(0) + moved), ours.scores(right.sum(0) - moved)
            for name in shuffled[0]:
                deltas.setdefault(name, []).append(shuffled[0][name] - shuffled[1][name])
    for name, of_seeds in deltas.items():
        observed, *shuffles_of_name = np.abs(np.mean(of_seeds, 0))
        yield name, float((1 + (np.array(shuffles_of_name) >= observed - 1e-9).sum()) / (shuffles + 1))
