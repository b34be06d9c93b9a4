"""Scores of one or two systems on the same examples: values, intervals, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from ..configs import LIKELIHOOD, MetricConfig
from ..data.part_checks import check_scores
from ..errors import DataError
from ..evaluation.collapse import collapsed
from ..evaluation.score import build_metric, merge_metrics
from ..examples import Example, Generation, Prediction, Scores
from ..parts import Metric
from ..recipe.load import select_parts
from ..registry import Registry
from .intervals import RESAMPLES, Interval, differences, groups_of, intervals, summed
from .table import Cell, Row, ScoreTable


def metrics(names: Sequence[str], sets: Sequence[str], registry: Registry) -> dict[str, MetricConfig]:
    """Metrics by name; without names, all installed metrics that judge texts only and need no settings or pictures.
    `sets`: overrides such as "captioneval.meteor=false". Raises DataError for a metric that judges likelihoods."""
    metric_names = list(names) or [
        name
        for name, part in registry.names("metric").items()
        if issubclass(part.config, MetricConfig)
        and not part.config.needs_pictures
        and part.config.judges == {"text"}
        and not any(info.is_required() for info in part.config.model_fields.values())
    ]
    selected = select_parts(MetricConfig, {}, metric_names, sets, registry)
    for name, config in selected.items():
        if LIKELIHOOD in config.judges:
            raise DataError(
                f"--metric {name}: a file of texts has no log-probabilities of references; add the metric to [metrics] "
                "of the recipe and run it again, or use `mmgen likelihood`"
            )
    return selected


def compare(
    systems: Mapping[str, Sequence[Any]],
    examples: Sequence[Example],
    configs: Mapping[str, MetricConfig],
    *,
    resamples: int = RESAMPLES,
) -> tuple[ScoreTable, dict[str, Scores]]:
    """Score one system, or two systems on the same examples: a row for each, for two also their difference, first minus
    second; and the scores of each. Errors of metrics propagate.

    systems    name -> for every example a text, or the value of one prediction
    resamples  of the bootstrap, and shuffles of the randomisation; 0: no intervals and p
    """
    groups, scores_of, notes = groups_of(examples), dict[str, Scores](), dict[str, None]()
    built = {name: build_metric(name, config) for name, config in configs.items()}
    for name, predictions in systems.items():
        scores_of[name] = _score(predictions, examples, built)
        texts = [prediction for prediction in predictions if isinstance(prediction, str)]
        remarks = [f"{name}: {remark}" for remark in [collapsed(texts)] if remark]
        notes.update(dict.fromkeys((*scores_of[name].notes, *remarks)))
    rows = [
        Row((name,), cells_of([scores.values], intervals(scores, configs, groups, resamples)))
        for name, scores in scores_of.items()
    ]
    columns = tuple(dict.fromkeys(name for scores in scores_of.values() for name in scores.values))
    if len(systems) == 2:
        first, second = ([scores] for scores in scores_of.values())
        rows.append(difference_row(("difference",), first, second, configs, groups, resamples))
    return ScoreTable(columns, tuple(rows), tuple(notes), heads=("metric",)), scores_of


def cells_of(
    rows: Sequence[Mapping[str, float | None]], spans: Mapping[str, Interval] | None = None
) -> dict[str, Cell]:
    """Column -> mean and sample standard deviation of the known values of all seeds; of one seed its value, with its
    interval."""
    cells: dict[str, Cell] = {}
    for column in dict.fromkeys(column for row in rows for column in row):
        if values := [value for row in rows if (value := row.get(column)) is not None]:
            deviation = stdev(values) if len(values) > 1 else None
            cells[column] = Cell(fmean(values), deviation, (spans or {}).get(column))
    return cells


def lower_is_better(metrics: Mapping[str, MetricConfig]) -> frozenset[str]:
    """The columns whose lowest value is the best, by both names that a column may have: "column", "METRIC.column"."""
    named = [(metric, column) for metric, config in metrics.items() for column in config.lower_is_better]
    return frozenset(name for metric, column in named for name in (column, f"{metric}.{column}"))


def difference_row(
    labels: tuple[str, ...],
    first: Sequence[Scores],
    second: Sequence[Scores],
    configs: Mapping[str, MetricConfig],
    groups: Sequence[str],
    resamples: int = RESAMPLES,
) -> Row:
    """First minus second, each the mean of its seeds, with intervals and p where the scores allow them. `configs`: the
    metrics of both, by name. `groups`: those of the examples of both."""
    ours, theirs = ([summed(scores, configs, groups) for scores in system] for system in (first, second))
    spans = differences(ours, theirs, resamples)
    values = [[scores.values for scores in system] for system in (first, second)]
    left, right = map(cells_of, values)
    cells = {
        column: Cell(left[column].value - right[column].value, None, *spans.get(column, (None, None)))
        for column in first[0].values
        if all(row.get(column) is not None for rows in values for row in rows)
    }
    return Row(labels, cells, "difference")


def _score(predictions: Sequence[Any], examples: Sequence[Example], metrics: Mapping[str, Metric]) -> Scores:
    """The scores of all metrics that have any."""
    outputs: list[Any] = [
        Generation(example.id, value, (), 0.0) if isinstance(value, str) else Prediction(example.id, value, 0.0)
        for example, value in zip(examples, predictions, strict=True)
    ]
    scores = {name: check_scores(name, metric.score(outputs, examples), examples) for name, metric in metrics.items()}
    return merge_metrics({name: of for name, of in scores.items() if {*of.values.values()} - {None}} or scores)
