"""The table on the page: rows in groups, 95 % intervals under the values, the best values in bold, and their notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation import score
from ..examples import Example, Scores
from ..scoring.intervals import Interval, groups_of, interval, resampled_means
from ..storage.run_folder import RunFolder
from .table import Spread, Table, Values, cell

RESAMPLES = 1000  # of the bootstrap
BEST = "Bold: the best value of any step, {which}. If intervals overlap, the order may be due to chance"

Intervals = Mapping[str, Mapping[str, Interval]]


def row_intervals(folder: RunFolder, table: Table, examples: Sequence[Example]) -> Intervals:
    """Row -> column -> the middle 95 % of a bootstrap over images, for scores that are means over examples. Empty for a
    table over seeds, and if all examples belong to one image."""
    groups = groups_of(examples)
    if table.averaged or len(set(groups)) < 2:
        return {}
    return {step: _score_intervals(score.read(folder.step(step)), groups) for step in table.steps}


def _score_intervals(scores: Scores, groups: Sequence[str]) -> dict[str, Interval]:
    spans = {name: interval(values) for name, values in resampled_means(scores, groups, RESAMPLES).items()}
    return {
        name: (low, high) for name, (low, high) in spans.items() if low < high
    }  # an empty interval: all values are equal


def page_table(table: Table, intervals: Intervals) -> dict[str, Any]:
    """The template's data of a table. A published row follows the step of the same name."""
    best = _best_values(table)

    def row(label: str, values: Values, kind: str) -> dict[str, Any]:
        row_spans, cells = intervals.get(label, {}), []
        for column in table.columns:
            value = values.get(column)
            cells.append(
                {
                    "text": cell(value),
                    "interval": f"{row_spans[column][0]:.1f}–{row_spans[column][1]:.1f}" if column in row_spans else "",
                    "best": kind == "step" and column in best and cell(value) == best[column],
                }
            )
        return {"label": label, "kind": kind, "cells": cells}

    ours = []
    for step, values in table.steps.items():
        ours.append(row(step, values, "step"))
        if step in table.published:
            ours.append(row("published", table.published[step], "published under"))
    published_rows = [
        row(label, values, "published") for label, values in table.published.items() if label not in table.steps
    ]
    references = [row(label, values, "reference") for label, values in table.references.items()]
    return {
        "title": table.title,
        "columns": table.columns,
        "lower": table.lower,
        "groups": [group for group in (ours, references, published_rows) if group],
        "notes": [*table.notes, *_interval_notes(table, intervals), *_best_note(table, best)],
    }


def _best_values(table: Table) -> dict[str, str]:
    """Column -> the best formatted value among the rows of steps, if several rows have values and these differ."""
    rows, best = table.steps.values(), {}
    for column in table.columns:
        known = [value for values in rows if (value := values.get(column)) is not None]
        if len({cell(value) for value in known}) > 1:
            choose = min if column in table.lower else max
            best[column] = cell(choose(known, key=lambda value: value.mean if isinstance(value, Spread) else value))
    return best


def _best_note(table: Table, best: Mapping[str, str]) -> list[str]:
    """A note on what is bold; lists the columns whose lowest value is bold."""
    lowest = [column for column in best if column in table.lower]
    which = "the highest" + (f" (of {', '.join(lowest)} the lowest)" if lowest else "")
    return [BEST.format(which=which)] if best else []


def _interval_notes(table: Table, intervals: Intervals) -> list[str]:
    """Notes on the method of the intervals, and on the columns without intervals."""
    if not any(intervals.values()):
        return []
    without = [column for column in table.columns if not any(column in row_spans for row_spans in intervals.values())]
    lines = [
        f"Small figures: 95 % intervals, by a bootstrap over the images ({RESAMPLES} resamples). A value that is the "
        "same for all examples has no interval"
    ]
    if without:
        lines.append(
            f"No interval for {', '.join(without)}: not a mean over examples; for intervals, run mmgen score "
            "RUN/steps/STEP/generations.jsonl --references RUN --corpus-intervals"
        )
    return lines
