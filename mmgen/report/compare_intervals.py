"""Confidence intervals of the difference between two runs, over the examples of both runs and over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import MmgenError
from ..evaluation import score
from ..examples import Example
from ..registry import installed
from ..scoring.intervals import Interval, groups_of, interval, resampled_means
from ..storage.run_folder import RunFolder
from ..storage.scored_examples import ScoredExamples

RESAMPLES = 1000
METHOD = (
    "differences have 95 % intervals, by a bootstrap over the examples' images and over several seeds; "
    "scores that are not means over examples have no interval"
)


class Difference(NamedTuple):
    """The score of the second run minus that of the first."""

    value: float
    interval: Interval

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:+z.2f} [{low:z.2f}, {high:z.2f}]"  # z: no minus before a rounded zero


def differences(first: Sequence[RunFolder], second: Sequence[RunFolder], step: str) -> dict[str, Difference]:
    """Column -> the difference of a step, second minus first; each run is the mean of its seeds. Empty if the runs are
    scored on different examples, or if their examples are no longer available.

    Both runs are resampled over the same examples (paired), and each over its seeds."""
    scored = [[score.read(folder.step(step)) for folder in run if folder.finished(step)] for run in (first, second)]
    examples = [_scored_examples(run[0], step) for run in (first, second)]
    if not all(scored) or not examples[0] or _targets_by_id(examples[0]) != _targets_by_id(examples[1]):
        return {}
    groups = groups_of(examples[0])
    resampled = [[resampled_means(scores, groups, RESAMPLES) for scores in run] for run in scored]
    results = {}
    for column in resampled[0][0]:
        means = [[columns[column] for columns in run if column in columns] for run in resampled]
        values = [[value for scores in run if (value := scores.values.get(column)) is not None] for run in scored]
        if all(
            len(run_means) == len(run) == len(value)
            for run_means, run, value in zip(means, scored, values, strict=True)
        ):
            first_means, second_means = (_resample_seeds(run_means, place) for place, run_means in enumerate(means))
            value = float(np.mean(values[1]) - np.mean(values[0]))
            results[column] = Difference(value, interval(second_means - first_means))
    return results


def _scored_examples(folder: RunFolder, step: str) -> Sequence[Example]:
    try:
        return ScoredExamples(folder.recipe(installed()), folder.path).scored_by(step)
    except MmgenError:  # the table works without examples
        return ()


def _targets_by_id(examples: Sequence[Example]) -> list[tuple[str, str]]:
    """The ids of examples with their references, equal for runs that can be compared."""
    return [(example.id, repr((example.targets, sorted(example.labels.items())))) for example in examples]


def _resample_seeds(means: Sequence[np.ndarray], run: int) -> np.ndarray:
    """(RESAMPLES,) means over seeds drawn with replacement, independently of other runs."""
    seeds = np.random.default_rng(run).integers(len(means), size=(len(means), RESAMPLES))
    seed_means: np.ndarray = np.take_along_axis(np.array(means), seeds, 0).mean(0)
    return seed_means
