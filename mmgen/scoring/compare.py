"""One system's texts or other predictions scored, or two systems' on the same examples: values, intervals, differences,
and the best of several texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from ..configs import MetricConfig
from ..data.checked import score_with
from ..evaluation.collapse import collapsed
from ..evaluation.score import merge
from ..progress import Progress
from ..recipe.layers import settings_of
from ..recipe.load import part_from
from ..registry import Registry
from ..tensors import Example, Generation, Prediction, Scores
from .intervals import (
    Interval,
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

AMONG_THEMSELVES = "self-"  # names of scores that compare texts with each other: no text of them is best
DIFFERENCE = "difference"


@dataclass(frozen=True)
class System:
    """Texts for examples, best first, under a name; or for each the value of one prediction that is no text."""

    name: str
    texts: Sequence[Sequence[Any]]


@dataclass
class Comparison:
    """What a table shows. Systems are keys throughout; with two there is the difference, first minus second."""

    values: dict[str, dict[str, float | None]] = field(default_factory=dict)  # system -> metric -> value
    intervals: dict[str, dict[str, Interval]] = field(default_factory=dict)
    oracle: dict[str, dict[str, float]] = field(default_factory=dict)
    per_example: dict[str, Mapping[str, Sequence[float | None]]] = field(default_factory=dict)
    probabilities: dict[str, float] = field(default_factory=dict)  # metric -> p of the difference
    tests: dict[str, str] = field(default_factory=dict)  # metric -> "bootstrap", "jackknife" or "randomisation"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Uncertainty:
    """How intervals and p are computed.

    resamples       of the bootstrap, for scores that are means over examples; 0: no intervals
    corpus          for other scores (BLEU): the jackknife, which scores 20 times more
    randomisations  for the difference of other scores: p by as many shuffles instead, each of which scores both systems
    seed            of the draws"""

    resamples: int = 1000
    corpus: bool = False
    randomisations: int = 0
    seed: int = 0


def metrics(names: Sequence[str], sets: Sequence[str], registry: Registry) -> dict[str, MetricConfig]:
    """Metrics by name; without names all that are installed, are about texts alone and need no setting. `sets`:
    "captioneval.meteor=false"."""
    chosen = list(names) or [
        name
        for name, part in registry.names("metric").items()
        if issubclass(part.config, MetricConfig)
        and part.config.judges == {"text"}
        and not any(info.is_required() for info in part.config.model_fields.values())
    ]
    metric_settings = settings_of(sets, chosen, "metric")
    return {
        name: part_from(MetricConfig, name, settings, registry, f"{name}.")
        for name, settings in metric_settings.items()
    }


def compare(
    systems: Sequence[System],
    examples: Sequence[Example],
    configs: Mapping[str, MetricConfig],
    *,
    seen: frozenset[str] | None = None,
    uncertainty: Uncertainty = Uncertainty(),
    progress: Progress | None = None,
) -> Comparison:
    """Scores of one system, or of two on the same examples. `seen`: texts that were learnt from, for the share of
    unseen ones. Raises what metrics raise."""
    judge = _Judge(configs, examples, seen)
    comparison = Comparison()
    with (progress or Progress()).task("scoring", None, "passes") as advance:
        judge.advance = advance
        for system in systems:
            scores = judge(_firsts(system))
            comparison.values[system.name] = dict(scores.values)
            comparison.per_example[system.name] = scores.per_example
            remark = collapsed(_firsts(system)) if judge.of_texts else ""
            remarks = [f"{system.name}: {remark}"] if remark else []
            comparison.notes = tuple(dict.fromkeys((*comparison.notes, *scores.notes, *remarks)))
            if max(map(len, system.texts)) > 1:
                comparison.oracle[system.name] = _oracle(judge, system, scores)
        if uncertainty.resamples and len(set(judge.groups)) > 1:  # one alone varies with nothing
            _by_bootstrap(comparison, judge.groups, uncertainty.resamples, uncertainty.seed)
        if uncertainty.corpus:
            _by_jackknife(comparison, judge, systems, uncertainty.seed)
        if uncertainty.randomisations and len(systems) == 2:
            _by_randomisation(comparison, judge, systems, uncertainty.randomisations, uncertainty.seed)
    _differences(comparison)
    return comparison


class _Judge:
    """All metrics at once, over the same examples or some of them."""

    def __init__(
        self, configs: Mapping[str, MetricConfig], examples: Sequence[Example], seen: frozenset[str] | None
    ) -> None:
        self.built = {name: config.build() for name, config in configs.items()}
        self.of_texts = all(config.judges == {"text"} for config in configs.values())
        self.examples = examples
        self.groups = groups_of(examples)
        self.seen = None if seen is None else {_plain(text) for text in seen}
        self.advance = lambda: None

    def __call__(self, texts: Sequence[Any], places: Sequence[int] | None = None) -> Scores:
        """One text, or the value of one prediction, an example."""
        chosen = range(len(self.examples)) if places is None else places
        examples = [self.examples[place] for place in chosen]
        written = [_made(self.examples[place].id, texts[place]) for place in chosen]
        together = Scores({})
        for name, metric in self.built.items():
            scores = score_with(name, metric, written, examples)
            if any(value is not None for value in scores.values.values()) or len(self.built) == 1:
                together = merge(together, scores)
        if self.seen is not None:
            new = [100.0 * (_plain(text.value) not in self.seen) for text in written]
            together = merge(together, Scores({"unseen": fmean(new)}, {"unseen": new}))
        self.advance()
        return together


def _made(example_id: str, value: Any) -> Any:
    """A `Generation` of a text, a `Prediction` of any other value."""
    return Generation(example_id, value, (), 0.0) if isinstance(value, str) else Prediction(example_id, value, 0.0)


def _plain(text: str) -> str:
    """Letters and digits alone: two spellings of one question are one."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())


def _firsts(system: System) -> list[Any]:
    return [texts[0] for texts in system.texts]


def _oracle(judge: _Judge, system: System, first: Scores) -> dict[str, float]:
    """Scores if for every example the text were chosen that this very metric likes best (its per-example score)."""
    ranks = max(map(len, system.texts))
    rounds = [[texts[min(rank, len(texts) - 1)] for texts in system.texts] for rank in range(ranks)]
    scores_by_rank = [first, *(judge(texts) for texts in rounds[1:])]
    best: dict[str, float] = {}
    for name in first.per_example:
        if not name.startswith(AMONG_THEMSELVES) and first.values.get(name) is not None:
            example_scores = [
                [scores.per_example[name][place] or 0.0 for scores in scores_by_rank]
                for place in range(len(system.texts))
            ]
            liked = [max(range(ranks), key=row.__getitem__) for row in example_scores]
            value = judge([rounds[rank][place] for place, rank in enumerate(liked)]).values[name]
            if value is not None:
                best[name] = value
    return best


def _by_bootstrap(comparison: Comparison, groups: Sequence[str], resamples: int, seed: int) -> None:
    drawn = {}
    for system in comparison.values:
        columns = means_over_examples(Scores(comparison.values[system], comparison.per_example[system]))
        drawn[system] = bootstrap(columns, groups, resamples, seed) if columns else {}
        comparison.intervals[system] = {name: interval(means) for name, means in drawn[system].items()}
    if len(drawn) == 2:
        first, second = drawn.values()  # the same draws: pairs
        differences = {name: first[name] - second[name] for name in first if name in second}
        comparison.intervals[DIFFERENCE] = {name: interval(deltas) for name, deltas in differences.items()}
        witnesses = {name: _witnesses(comparison, name, groups) for name in differences}
        comparison.probabilities = {name: probability(deltas, witnesses[name]) for name, deltas in differences.items()}
        comparison.tests = dict.fromkeys(differences, "bootstrap")


def _witnesses(comparison: Comparison, name: str, groups: Sequence[str]) -> int:
    """How many groups have an example that a score is about."""
    values = next(iter(comparison.per_example.values()))[name]
    return len({group for group, value in zip(groups, values, strict=True) if value is not None})


def _by_jackknife(comparison: Comparison, judge: _Judge, systems: Sequence[System], seed: int) -> None:
    """Intervals of what the bootstrap had to leave out."""

    def score(places: Sequence[int]) -> dict[tuple[str, str], float | None]:
        by_system = {system.name: dict(judge(_firsts(system), places).values) for system in systems}
        if len(systems) == 2:
            by_system[DIFFERENCE] = _minus(*by_system.values())
        return {(name, metric): value for name, values in by_system.items() for metric, value in values.items()}

    centre = {**comparison.values, **({DIFFERENCE: _minus(*comparison.values.values())} if len(systems) == 2 else {})}
    for (name, metric), error in jackknife(score, judge.groups, seed).items():
        system_intervals = comparison.intervals.setdefault(name, {})
        value = centre[name].get(metric)
        if metric not in system_intervals and value is not None:
            system_intervals[metric] = around(value, error)
            if name == DIFFERENCE:
                comparison.probabilities[metric] = jackknife_probability(value, error)
                comparison.tests[metric] = "jackknife"


def _by_randomisation(comparison: Comparison, judge: _Judge, systems: Sequence[System], rounds: int, seed: int) -> None:
    """p of what the bootstrap had to leave out."""
    first, second = map(_firsts, systems)

    def difference(swapped: np.ndarray) -> dict[str, float | None]:
        mixed = [(b, a) if swap else (a, b) for a, b, swap in zip(first, second, swapped, strict=True)]
        return _minus(*(judge(list(texts)).values for texts in zip(*mixed, strict=True)))

    for name, p in randomisation(difference, judge.groups, rounds, seed).items():
        if comparison.tests.get(name) != "bootstrap":
            comparison.probabilities[name], comparison.tests[name] = p, "randomisation"


def _differences(comparison: Comparison) -> None:
    if len(comparison.values) == 2:
        comparison.values[DIFFERENCE] = _minus(*comparison.values.values())


def _minus(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> dict[str, float | None]:
    return {
        name: None if value is None or (less := second.get(name)) is None else value - less
        for name, value in first.items()
    }
