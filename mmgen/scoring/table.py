"""One table of scores: for the terminal, Markdown, LaTeX, CSV, notebooks, and the page of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..progress import html_table, table
from .intervals import Interval

Kind = Literal["step", "reference", "published", "difference"]
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
LATEX = str.maketrans({**SPECIAL, **{sign: f"\\{sign}" for sign in "&%$#_{}"}})


@dataclass(frozen=True)
class Cell:
    """A score.

    deviation  the sample standard deviation over seeds; value is then their mean
    interval   the middle 95 % of a bootstrap over images
    p          two-sided, of a difference
    """

    value: float
    deviation: float | None = None
    interval: Interval | None = None
    p: float | None = None

    def text(self, digits: int = 2, signed: bool = False) -> str:
        """The value, with its deviation. A rounded zero has no minus. `signed`: with a plus before a positive one."""
        value = f"{self.value:{'+' * signed}z.{digits}f}"
        return value if self.deviation is None else f"{value} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True)
class Row:
    """A row of a table. `labels`: one for each of the table's leading columns."""

    labels: tuple[str, ...]
    cells: Mapping[str, Cell]
    kind: Kind = "step"


@dataclass(frozen=True)
class ScoreTable:
    """Rows of scores with notes on the method.

    columns  the scores, in order
    heads    the names of the leading columns, which hold words
    lower    the columns whose lowest value is the best
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    title: str = ""
    lower: frozenset[str] = frozenset()
    heads: tuple[str, ...] = ("step",)

    def __repr__(self) -> str:
        labels = ", ".join(" ".join(row.labels) for row in self.rows)
        return f"<ScoreTable{f' of {self.title}' * bool(self.title)}: {labels}; {', '.join(self.columns)}>"

    def __str__(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        return html_table(self.texts(), self.notes, self.title)

    def of(self, kind: Kind) -> dict[str, Mapping[str, Cell]]:
        """The rows of a kind, by their first label."""
        return {row.labels[0]: row.cells for row in self.rows if row.kind == kind}

    def texts(self, digits: int = 2) -> list[list[str]]:
        """The header and a line for every row. A difference is followed by its interval."""
        lines = [[*self.heads, *self.columns]]
        for row in self.rows:
            labels = (f"{row.labels[0]} (published)" if row.kind == "published" else row.labels[0], *row.labels[1:])
            lines.append([*labels, *(_text(row, column, digits) for column in self.columns)])
        return lines

    def by_score(self, digits: int = 2) -> list[list[str]]:
        """The header and a line for every score, with the rows side by side: short lines for few rows. A row with
        intervals or p has a column for them."""
        columns = [[self.heads[0], *self.columns]]
        for row in self.rows:
            cells = [row.cells.get(column) for column in self.columns]
            signed = row.kind == "difference"
            columns.append(
                [" ".join(row.labels), *("-" if cell is None else cell.text(digits, signed) for cell in cells)]
            )
            if any(cell and cell.interval for cell in cells):
                spans = [cell.interval if cell else None for cell in cells]
                columns.append(["95 %", *("-" if span is None else _span(span, digits, " to ") for span in spans)])
            if any(cell and cell.p is not None for cell in cells):
                columns.append(["p", *("-" if cell is None or cell.p is None else f"{cell.p:.3f}" for cell in cells)])
        return [list(line) for line in zip(*columns, strict=True)]

    def best(self) -> dict[str, str]:
        """Column -> the best value among the steps as it is shown, if several steps have values and these differ."""
        best = {}
        for column in self.columns:
            known = [cells[column] for cells in self.of("step").values() if column in cells]
            if len({cell.text() for cell in known}) > 1:
                best[column] = (min if column in self.lower else max)(known, key=lambda cell: cell.value).text()
        return best

    def markdown(self) -> str:
        """Markdown that is also readable in a terminal: title, rows, then notes on the method."""
        title = [f"{self.title}:", ""] if self.title else []
        return "\n".join(
            [*title, table(self.texts(), texts=len(self.heads)), *([""] if self.notes else []), *self.notes]
        )

    def latex(self, digits: int = 2) -> str:
        """A tabular of the package booktabs, with minus signs; the notes are comments."""
        head, *body = [[cell.translate(LATEX) for cell in line] for line in self.texts(digits)]
        words = len(self.heads)
        lines = [" & ".join([*line[:words], *map(_latex_number, line[words:])]) + r" \\" for line in body]
        columns = "l" * words + "r" * len(self.columns)
        tabular = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(head) + r" \\", r"\midrule", *lines]
        return "\n".join([*tabular, r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in self.notes)])

    def csv(self) -> str:
        """A line for each score, not rounded; unknown scores are left out."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow((*self.heads, "kind", "score", "value", "deviation", "low", "high", "p"))
        for row in self.rows:
            for column in self.columns:
                if cell := row.cells.get(column):
                    numbers = (cell.value, cell.deviation, *(cell.interval or (None, None)), cell.p)
                    shown = ("" if number is None else number for number in numbers)
                    writer.writerow((*row.labels, row.kind, column, *shown))
        return text.getvalue()


def _text(row: Row, column: str, digits: int) -> str:
    cell = row.cells.get(column)
    if cell is None:
        return "-"
    if row.kind != "difference":
        return cell.text(digits)
    span = f" [{_span(cell.interval, digits, ', ')}]" if cell.interval else ""
    return cell.text(digits, signed=True) + span


def _span(interval: Interval, digits: int, between: str) -> str:
    return between.join(f"{value:z.{digits}f}" for value in interval)


def _latex_number(cell: str) -> str:
    """A number of a table with minus signs in place of hyphens; a lone hyphen says that there is none."""
    return cell if cell == "-" else cell.replace("-", "$-$")
