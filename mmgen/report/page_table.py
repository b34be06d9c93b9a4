"""The table on the page: rows in groups, 95 % intervals under the values, the best values in bold, and their notes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..scoring.intervals import RESAMPLES
from ..scoring.table import Row, ScoreTable

BEST = "Bold: the best value of any step, {which}. If intervals overlap, the order may be due to chance"


def page_table(table: ScoreTable) -> dict[str, Any]:
    """The template's data of a table. A published row follows the step of the same name."""
    best, published = table.best(), {row.labels[0]: row for row in table.rows if row.kind == "published"}

    def shown(row: Row, under: bool = False) -> dict[str, Any]:
        cells = []
        for column in table.columns:
            cell = row.cells.get(column)
            span = f"{cell.interval[0]:.1f}–{cell.interval[1]:.1f}" if cell and cell.interval else ""
            is_best = row.kind == "step" and cell is not None and cell.text() == best.get(column)
            cells.append({"text": cell.text() if cell else "–", "interval": span, "best": is_best})
        label, kind = ("published", "published under") if under else (row.labels[0], row.kind)
        return {"label": label, "kind": kind, "cells": cells}

    ours, references = [], []
    for row in table.rows:
        if row.kind == "step":
            ours.append(shown(row))
            if of_paper := published.pop(row.labels[0], None):
                ours.append(shown(of_paper, under=True))
        elif row.kind == "reference":
            references.append(shown(row))
    others = [shown(row) for row in published.values()]
    return {
        "title": table.title,
        "columns": table.columns,
        "lower": table.lower,
        "groups": [group for group in (ours, references, others) if group],
        "notes": [*table.notes, *_interval_notes(table), *_best_note(table, best)],
    }


def _best_note(table: ScoreTable, best: Collection[str]) -> list[str]:
    """A note on what is bold; lists the columns whose lowest value is bold."""
    lowest = [column for column in best if column in table.lower]
    which = "the highest" + (f" (of {', '.join(lowest)} the lowest)" if lowest else "")
    return [BEST.format(which=which)] if best else []


def _interval_notes(table: ScoreTable) -> list[str]:
    """Notes on the method of the intervals, and on the columns without intervals."""
    cells = [(column, cell) for row in table.of("step").values() for column, cell in row.items()]
    having = {column for column, cell in cells if cell.interval}
    if not having:
        return []
    without = [column for column in table.columns if column not in having]
    return [
        f"Small figures: 95 % intervals, by a bootstrap over the images ({RESAMPLES} resamples). A value that is the "
        "same for all examples has no interval",
        *([f"No interval for {', '.join(without)}: not a function of sums over examples"] if without else []),
    ]
