"""Scores of one or two systems on the same examples: values, intervals, differences, the best of several texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from ..configs import MetricConfig
from ..data.part_checks import score_with
from ..evaluation.collapse import collapsed
from ..evaluation.score import build_metric, merge
from ..examples import Example, Generation, Prediction, Scores
from ..progress import Progress, html_table, number
from ..recipe.layers import settings_of
from ..recipe.load import part_from
from ..registry import Registry
from .intervals import (
    Interval,
    around,
    bootstrap,
    count_groups,
    groups_of,
    interval,
    jackknife,
    jackknife_probability,
    means_over_examples,
    probability,
    randomisation,
)

SELF_SCORES = "self-"  # prefix of scores that compare generated texts with each other; these have no best text
DIFFERENCE = "difference"


@dataclass(frozen=True)
class System:
    """The predictions of a named system, one list per example: texts, best first, or the value of one prediction."""

    name: str
    texts: Sequence[Sequence[Any]]


@dataclass
class Comparison:
    """The scores of one or two systems, by system name. Of two systems also "difference", first minus second."""

    values: dict[str, dict[str, float | None]] = field(default_factory=dict)  # system -> metric -> value
    intervals: dict[str, dict[str, Interval]] = field(default_factory=dict)
    oracle: dict[str, dict[str, float]] = field(default_factory=dict)
    per_example: dict[str, Mapping[str, Sequence[float | None]]] = field(default_factory=dict)
    probabilities: dict[str, float] = field(default_factory=dict)  # metric -> p of the difference
    tests: dict[str, str] = field(default_factory=dict)  # metric -> "bootstrap", "jackknife" or "randomisation"
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.values)}>"

    def _repr_html_(self) -> str:
        """One row per metric, with intervals and p, as a table for a notebook."""
        rows = []
        for metric in next(iter(self.values.values()), {}):
            cells = [self._format_score(system, metric) for system in self.values]
            p = [f"{self.probabilities[metric]:.3f}" if metric in self.probabilities else "-"]
            rows.append([metric, *cells, *(p if self.probabilities else [])])
        header = ["metric", *self.values, *(["p"] if self.probabilities else [])]
        return html_table([header, *rows], self.notes)

    def _format_score(self, system: str, metric: str) -> str:
        """A score with its interval."""
        span = self.intervals.get(system, {}).get(metric)
        value = number(self.values[system].get(metric))
        return value if span is None else f"{value} ({number(span[0])} to {number(span[1])})"


@dataclass(frozen=True)
class Uncertainty:
    """The settings of intervals and p-values.

    resamples       bootstrap resamples, for scores that are means over examples; 0: no intervals
    corpus          whether other scores (BLEU) get jackknife intervals, which take 20 more scorings
    randomisations  shuffles for the p-value of a difference of other scores, instead of the jackknife; each shuffle
                    scores both systems
    seed            of the random draws"""

    resamples: int = 1000
    corpus: bool = False
    randomisations: int = 0
    seed: int = 0


def metrics(names: Sequence[str], sets: Sequence[str], registry: Registry) -> dict[str, MetricConfig]:
    """Metrics by name; without names, all installed metrics that judge texts only and need no settings or pictures.
    `sets`: overrides such as "captioneval.meteor=false"."""
    metric_names = list(names) or [
        name
        for name, part in registry.names("metric").items()
        if issubclass(part.config, MetricConfig)
        and not part.config.needs_pictures
        and part.config.judges == {"text"}
        and not any(info.is_required() for info in part.config.model_fields.values())
    ]
    metric_settings = settings_of(sets, metric_names, "metric")
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
    """Score one system, or two systems on the same examples. `seen`: training texts, for the share of unseen texts.
    Errors of metrics propagate."""
    judge = _Judge(configs, examples, seen)
    comparison = Comparison()
    with (progress or Progress()).task("scoring", None, "passes") as advance:
        judge.advance = advance
        for system in systems:
            scores = judge(_best_texts(system))
            comparison.values[system.name] = dict(scores.values)
            comparison.per_example[system.name] = scores.per_example
            remark = collapsed(_best_texts(system)) if judge.of_texts else ""
            remarks = [f"{system.name}: {remark}"] if remark else []
            comparison.notes = tuple(dict.fromkeys((*comparison.notes, *scores.notes, *remarks)))
            if max(map(len, system.texts)) > 1:
                comparison.oracle[system.name] = _score_oracle(judge, system, scores)
        if uncertainty.resamples and len(set(judge.groups)) > 1:  # a single group has no variance
            _by_bootstrap(comparison, judge.groups, uncertainty.resamples, uncertainty.seed)
        if uncertainty.corpus:
            _by_jackknife(comparison, judge, systems, uncertainty.seed)
        if uncertainty.randomisations and len(systems) == 2:
            _by_randomisation(comparison, judge, systems, uncertainty.randomisations, uncertainty.seed)
    _add_differences(comparison)
    return comparison


class _Judge:
    """Scores predictions with all metrics, over all examples or a subset."""

    def __init__(
        self, configs: Mapping[str, MetricConfig], examples: Sequence[Example], seen: frozenset[str] | None
    ) -> None:
        self.built = {name: build_metric(name, config) for name, config in configs.items()}
        self.of_texts = all(config.judges == {"text"} for config in configs.values())
        self.examples = examples
        self.groups = groups_of(examples)
        self.seen = None if seen is None else {_letters_and_digits(text) for text in seen}
        self.advance = lambda: None

    def __call__(self, texts: Sequence[Any], places: Sequence[int] | None = None) -> Scores:
        """Score one text or prediction value per example. `places`: indices of the examples to score; default all."""
        places = range(len(self.examples)) if places is None else places
        examples = [self.examples[place] for place in places]
        outputs = [_as_output(self.examples[place].id, texts[place]) for place in places]
        merged = Scores({})
        for name, metric in self.built.items():
            scores = score_with(name, metric, outputs, examples)
            if any(value is not None for value in scores.values.values()) or len(self.built) == 1:
                merged = merge(merged, scores)
        if self.seen is not None:
            unseen = [100.0 * (_letters_and_digits(text.value) not in self.seen) for text in outputs]
            merged = merge(merged, Scores({"unseen": fmean(unseen)}, {"unseen": unseen}))
        self.advance()
        return merged


def _as_output(example_id: str, value: Any) -> Any:
    """A `Generation` of a text, a `Prediction` of any other value."""
    return Generation(example_id, value, (), 0.0) if isinstance(value, str) else Prediction(example_id, value, 0.0)


def _letters_and_digits(text: str) -> str:
    """Letters and digits only, in lower case, so that two spellings of a question compare as equal."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())


def _best_texts(system: System) -> list[Any]:
    return [texts[0] for texts in system.texts]


def _score_oracle(judge: _Judge, system: System, first: Scores) -> dict[str, float]:
    """Scores if a perfect choice picked, for every example, the text with the best per-example score of the metric."""
    ranks = max(map(len, system.texts))
    rounds = [[texts[min(rank, len(texts) - 1)] for texts in system.texts] for rank in range(ranks)]
    scores_by_rank = [first, *(judge(texts) for texts in rounds[1:])]
    best: dict[str, float] = {}
    for name in first.per_example:
        if not name.startswith(SELF_SCORES) and first.values.get(name) is not None:
            example_scores = [
                [scores.per_example[name][place] or 0.0 for scores in scores_by_rank]
                for place in range(len(system.texts))
            ]
            best_ranks = [max(range(ranks), key=row.__getitem__) for row in example_scores]
            value = judge([rounds[rank][place] for place, rank in enumerate(best_ranks)]).values[name]
            if value is not None:
                best[name] = value
    return best


def _by_bootstrap(comparison: Comparison, groups: Sequence[str], resamples: int, seed: int) -> None:
    resampled = {}
    for system in comparison.values:
        columns = means_over_examples(Scores(comparison.values[system], comparison.per_example[system]))
        resampled[system] = bootstrap(columns, groups, resamples, seed) if columns else {}
        comparison.intervals[system] = {name: interval(means) for name, means in resampled[system].items()}
    if len(resampled) == 2:
        first, second = resampled.values()  # the same draws, hence paired
        differences = {name: first[name] - second[name] for name in first if name in second}
        comparison.intervals[DIFFERENCE] = {name: interval(deltas) for name, deltas in differences.items()}
        values = next(iter(comparison.per_example.values()))
        group_counts = {name: count_groups(groups, values[name]) for name in differences}
        comparison.probabilities = {
            name: probability(deltas, group_counts[name]) for name, deltas in differences.items()
        }
        comparison.tests = dict.fromkeys(differences, "bootstrap")


def _by_jackknife(comparison: Comparison, judge: _Judge, systems: Sequence[System], seed: int) -> None:
    """Intervals of the scores without bootstrap intervals."""

    def score(places: Sequence[int]) -> dict[tuple[str, str], float | None]:
        by_system = {system.name: dict(judge(_best_texts(system), places).values) for system in systems}
        if len(systems) == 2:
            by_system[DIFFERENCE] = _subtract_scores(*by_system.values())
        return {(name, metric): value for name, values in by_system.items() for metric, value in values.items()}

    centre = {
        **comparison.values,
        **({DIFFERENCE: _subtract_scores(*comparison.values.values())} if len(systems) == 2 else {}),
    }
    for (name, metric), error in jackknife(score, judge.groups, seed).items():
        system_intervals = comparison.intervals.setdefault(name, {})
        value = centre[name].get(metric)
        if metric not in system_intervals and value is not None:
            system_intervals[metric] = around(value, error)
            if name == DIFFERENCE:
                comparison.probabilities[metric] = jackknife_probability(value, error)
                comparison.tests[metric] = "jackknife"


def _by_randomisation(comparison: Comparison, judge: _Judge, systems: Sequence[System], rounds: int, seed: int) -> None:
    """p-values of the scores without bootstrap p-values."""
    first, second = map(_best_texts, systems)

    def difference(swapped: np.ndarray) -> dict[str, float | None]:
        mixed = [(b, a) if swap else (a, b) for a, b, swap in zip(first, second, swapped, strict=True)]
        return _subtract_scores(*(judge(list(texts)).values for texts in zip(*mixed, strict=True)))

    for name, p in randomisation(difference, judge.groups, rounds, seed).items():
        if comparison.tests.get(name) != "bootstrap":
            comparison.probabilities[name], comparison.tests[name] = p, "randomisation"


def _add_differences(comparison: Comparison) -> None:
    if len(comparison.values) == 2:
        comparison.values[DIFFERENCE] = _subtract_scores(*comparison.values.values())


def _subtract_scores(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> dict[str, float | None]:
    return {
        name: None if value is None or (less := second.get(name)) is None else value - less
        for name, value in first.items()
    }
