"""Cells of scores over seeds, and the difference of two rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from ..configs import MetricConfig
from ..examples import Scores
from .intervals import RESAMPLES, Interval, differences, summed
from .table import Cell, Row


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
