"""One table of scores: for the terminal, Markdown, LaTeX, CSV, notebooks, and the page of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from ..errors import MmgenError, unknown
from ..files import write_text
from ..progress import table
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

    def span(self, digits: int = 2, between: str = ", ") -> str:
        """The interval; "" if there is none."""
        return between.join(f"{value:z.{digits}f}" for value in self.interval or ())


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
    upright  whether it is shown with a line for each score (`by_score`)
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    title: str = ""
    lower: frozenset[str] = frozenset()
    heads: tuple[str, ...] = ("step",)
    upright: bool = False

    def __repr__(self) -> str:
        return self.markdown()

    def of(self, kind: Kind) -> dict[str, Mapping[str, Cell]]:
        """The rows of a kind, by their first label."""
        return {row.labels[0]: row.cells for row in self.rows if row.kind == kind}

    def texts(self, digits: int = 2) -> list[list[str]]:
        """The header and a line for every row. A difference is followed by its interval."""
        lines = [[*self.heads, *self.columns]]
        for row in self.rows:
            signed, cells = row.kind == "difference", [row.cells.get(column) for column in self.columns]
            spans = [f" [{cell.span(digits)}]" if signed and cell and cell.interval else "" for cell in cells]
            name = f"{row.labels[0]}{' (published)' * (row.kind == 'published')}"
            shown = [cell.text(digits, signed) + span if cell else "-" for cell, span in zip(cells, spans, strict=True)]
            lines.append([name, *row.labels[1:], *shown])
        return lines

    def by_score(self, digits: int = 2) -> list[list[str]]:
        """The header and a line for every score, with the rows side by side: short lines for few rows. A row with
        intervals or p has a column for them."""
        columns = [[self.heads[0], *self.columns]]
        for row in self.rows:
            forms: dict[str, Callable[[Cell], str]] = {
                " ".join(row.labels): partial(Cell.text, digits=digits, signed=row.kind == "difference"),
                "95 %": partial(Cell.span, digits=digits, between=" to "),
                "p": lambda cell: "" if cell.p is None else f"{cell.p:.3f}",
            }
            for place, (head, form) in enumerate(forms.items()):
                texts = [form(row.cells[column]) if column in row.cells else "" for column in self.columns]
                if any(texts) or not place:
                    columns.append([head, *(text or "-" for text in texts)])
        return [list(line) for line in zip(*columns, strict=True)]

    def best(self) -> dict[str, str]:
        """Column -> the best value among the steps as it is shown, if several steps have values and these differ."""
        best = {}
        for column in self.columns:
            known = [cells[column] for cells in self.of("step").values() if column in cells]
            if len({cell.text() for cell in known}) > 1:
                best[column] = (min if column in self.lower else max)(known, key=lambda cell: cell.value).text()
        return best

    def spanned(self) -> bool:
        """Whether a step has a score with an interval."""
        return any(cell.interval for cells in self.of("step").values() for cell in cells.values())

    def markdown(self, digits: int = 2) -> str:
        """Markdown that is also readable in a terminal: title, rows, then notes on the method."""
        shown = table(self.by_score(digits)) if self.upright else table(self.texts(digits), len(self.heads))
        return "\n\n".join(filter(None, (f"{self.title}:" * bool(self.title), shown, "\n".join(self.notes))))

    def latex(self, digits: int = 2) -> str:
        """A tabular of the package booktabs, with minus signs; the notes are comments."""
        head, *body = [[cell.translate(LATEX) for cell in line] for line in self.texts(digits)]
        words = len(self.heads)
        for line in body:  # a lone hyphen says that there is no number
            line[words:] = [cell if cell == "-" else cell.replace("-", "$-$") for cell in line[words:]]
        first, *lines = (" & ".join(line) + r" \\" for line in (head, *body))
        columns = "l" * words + "r" * len(self.columns)
        tabular = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", first, r"\midrule", *lines, r"\bottomrule"]
        notes = (f"% {line}" for note in self.notes for line in note.splitlines())
        return "\n".join([*tabular, r"\end{tabular}", *notes])


def as_csv(tables: Sequence[ScoreTable]) -> str:
    """A line for each score, not rounded; unknown scores are left out."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*tables[0].heads, "kind", "score", "value", "deviation", "low", "high", "p"))
    for shown in tables:
        for row in shown.rows:
            for column in filter(row.cells.__contains__, shown.columns):
                cell = row.cells[column]
                numbers = (cell.value, cell.deviation, *(cell.interval or (None, None)), cell.p)
                writer.writerow((*row.labels, row.kind, column, *numbers))  # None is an empty field
    return text.getvalue()


def as_markdown(tables: Sequence[ScoreTable], digits: int = 2) -> str:
    """The tables below one another."""
    return "\n\n".join(shown.markdown(digits) for shown in tables)


WRITERS: Mapping[str, Callable[[Sequence[ScoreTable], int], str]] = {
    ".csv": lambda tables, _: as_csv(tables),
    ".tex": lambda tables, digits: (
        "\n\n".join([r"% needs \usepackage{booktabs}", *(shown.latex(digits) for shown in tables)]) + "\n"
    ),
    ".md": lambda tables, digits: as_markdown(tables, digits) + "\n",
}


def write(tables: Sequence[ScoreTable], path: Path, digits: int = 2) -> None:
    """Write tables in the format that the name's ending says. Raises MmgenError."""
    if path.suffix not in WRITERS:
        raise MmgenError(f"--out {path}: the name must end in {', '.join(WRITERS)}")
    write_text(path, WRITERS[path.suffix](tables, digits))


def chosen(tables: Sequence[ScoreTable], columns: Sequence[str]) -> list[ScoreTable]:
    """The tables with some scores, in this order. Raises MmgenError for an unknown score."""
    known = dict.fromkeys(column for shown in tables for column in shown.columns)
    for column in columns:
        if problem := unknown(column, known):
            raise MmgenError(f"--columns: {problem}")
    return [replace(shown, columns=tuple(filter(shown.columns.__contains__, columns))) for shown in tables]
