"""The table as the page shows it: rows in groups, 95 % intervals under the values, the highest of a column marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation import score
from ..scoring.intervals import Interval, bootstrap, groups_of, interval, means_over_examples
from ..storage import decodings
from ..storage.run_folder import RunFolder
from ..tensors import Example, Scores
from .table import Spread, Table, Values, cell

RESAMPLES = 1000  # of the bootstrap
HIGHEST = "Bold: the highest value that a step reaches. Where intervals overlap, the order may be chance"

Intervals = Mapping[str, Mapping[str, Interval]]


def row_intervals(folder: RunFolder, found: Table, examples: Sequence[Example]) -> Intervals:
    """Row -> column -> the middle 95 % of a bootstrap over images, for scores that are means over examples. Empty for a
    table over seeds, and where all examples are of one image."""
    groups = groups_of(examples)
    if found.averaged or len(set(groups)) < 2:
        return {}
    places = {step: folder.step(step) for step in found.steps}
    for step, again in found.again.items():
        there = [place for place in decodings.folders(folder, step) if place.name in again]
        places |= {decodings.label(step, place.name): place for place in there}
    return {label: _intervals(score.read(place), groups) for label, place in places.items()}


def _intervals(scores: Scores, groups: Sequence[str]) -> dict[str, Interval]:
    whole = {name: values for name, values in scores.per_example.items() if len(values) == len(groups)}
    columns = means_over_examples(Scores(scores.values, whole))
    drawn = bootstrap(columns, groups, RESAMPLES, seed=0) if columns else {}
    spans = {name: interval(values) for name, values in drawn.items()}
    return {name: (low, high) for name, (low, high) in spans.items() if low < high}  # all alike: nothing to draw from


def page_table(found: Table, intervals: Intervals) -> dict[str, Any]:
    """What the template shows. A published row stands under the step that it is named like."""
    highest = _highest(found)

    def row(label: str, values: Values, kind: str) -> dict[str, Any]:
        own, cells = intervals.get(label, {}), []
        for column in found.columns:
            value = values.get(column)
            cells.append(
                {
                    "text": cell(value),
                    "interval": f"{own[column][0]:.1f}–{own[column][1]:.1f}" if column in own else "",
                    "highest": kind in ("step", "again") and column in highest and cell(value) == highest[column],
                }
            )
        return {"label": label, "kind": kind, "cells": cells}

    ours = []
    for step, values in found.steps.items():
        ours.append(row(step, values, "step"))
        ours += [row(decodings.label(step, name), each, "again") for name, each in found.again.get(step, {}).items()]
        if step in found.published:
            ours.append(row("published", found.published[step], "published under"))
    others = [row(label, values, "published") for label, values in found.published.items() if label not in found.steps]
    references = [row(label, values, "reference") for label, values in found.references.items()]
    return {
        "title": found.title,
        "columns": found.columns,
        "groups": [group for group in (ours, references, others) if group],
        "notes": [*found.notes, *_how(found, intervals), *([HIGHEST] if highest else [])],
    }


def _highest(found: Table) -> dict[str, str]:
    """Column -> the highest value of the rows of steps as it is shown, where several rows have one and they differ."""
    rows, highest = found.rows().values(), {}
    for column in found.columns:
        known = [value for values in rows if (value := values.get(column)) is not None]
        shown = {cell(value) for value in known}
        if len(shown) > 1:
            highest[column] = cell(max(known, key=lambda value: value.mean if isinstance(value, Spread) else value))
    return highest


def _how(found: Table, intervals: Intervals) -> list[str]:
    """What the intervals are, and which columns have none."""
    if not any(intervals.values()):
        return []
    without = [column for column in found.columns if not any(column in own for own in intervals.values())]
    lines = [
        f"Small figures: 95 % intervals, by a bootstrap over the images ({RESAMPLES} times). There is none where all "
        "examples have the same value"
    ]
    if without:
        lines.append(
            f"No interval for {', '.join(without)}: no mean over examples; mmgen score "
            "RUN/steps/STEP/generations.jsonl --references RUN --corpus-intervals has them"
        )
    return lines
