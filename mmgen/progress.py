"""Output for people: progress lines, text fitted to the terminal, aligned tables, numbers, HTML tables of notebooks.

Everything that is printed goes through `tell` or `Bars`: text from outside cannot control the terminal, and wide text
is fitted to its width. Files and JSON keep texts unchanged. Stages report to a `Progress`.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TextIO

from .errors import printable

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

EVERY = 20.0  # seconds between lines without a terminal
CELL_ENDS = re.compile(r"(?<!\\)\|")  # in a line of a table
Advance = Callable[..., None]  # advance(steps=1, text="loss 2.31")


class Progress:
    """Prints nothing; for stages without a viewer."""

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        """Work of `total` steps (None: unknown), `done` of them earlier. Yields a function to call as steps finish."""
        yield lambda steps=1, text="": None

    def say(self, text: str) -> None:
        """Print a line."""


class Bars(Progress):
    """A progress line in a terminal; elsewhere (a log file) a line every `EVERY` seconds and at the end of a task.

    transient  leave nothing in a terminal, and elsewhere no line of a task that took less than `EVERY` seconds
    """

    def __init__(self, transient: bool = False) -> None:
        from rich.console import Console

        self.transient, self.console = transient, Console()

    def say(self, text: str) -> None:
        most = self.console.width if self.console.is_terminal else None
        self.console.print(fitted(printable(text), most), markup=False, highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        shown = self._terminal_task if self.console.is_terminal else self._lines
        with shown(printable(label), total, unit, done) as advance:
            yield advance

    @contextlib.contextmanager
    def _terminal_task(self, label: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
        from rich.progress import Progress

        shown = _bar_columns(self.console.width)
        with Progress(*shown, console=self.console, transient=self.transient, speed_estimate_period=300.0) as bars:
            task = bars.add_task(label, total=total, completed=done, text="")

            def advance(steps: int = 1, text: str = "") -> None:
                changed: dict[str, Any] = {"text": printable(text)} if text else {}
                bars.update(task, advance=steps, **changed)

            yield advance

    @contextlib.contextmanager
    def _lines(self, label: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
        began = last_line = time.monotonic()
        before, last = done, ""

        def say() -> None:
            seconds = time.monotonic() - began
            speed = (done - before) / seconds if seconds > 0 else 0.0
            rate = f"{speed:>6.3g} {unit}/s" if unit and speed else ""
            left = f", {clock((total - done) / speed)} left" if total is not None and done < total and speed else ""
            count = done if total is None else f"{done}/{total}"
            self.say(f"{label:<26} {count:>14} {rate:<22} {seconds:5.0f} s{left}  {last}".rstrip())

        def advance(steps: int = 1, text: str = "") -> None:
            nonlocal done, last, last_line
            done, last = done + steps, printable(text) or last
            if time.monotonic() - last_line > EVERY and done != total:  # the last line comes below
                last_line = time.monotonic()
                say()

        yield advance
        if not self.transient or time.monotonic() - began > EVERY:
            say()


def _bar_columns(width: int) -> list[ProgressColumn]:
    """The columns of a task's line in a terminal: label, count, times and text, and from 120 columns on a bar. Without
    room, the label and the text are cut."""
    from rich.progress import BarColumn, MofNCompleteColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Cut(TextColumn):
        def render(self, task: Task) -> Text:
            text = super().render(task)
            text.no_wrap, text.overflow = True, "ellipsis"
            return text

    whole = [kind(table_column=Column(no_wrap=True)) for kind in (MofNCompleteColumn, TimeElapsedColumn)]
    left = TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True))
    label, text = (
        Cut(field, markup=False, table_column=Column()) for field in ("{task.description}", "{task.fields[text]}")
    )
    return [label, *whole, left, text, *[BarColumn(16)] * (width >= 120)]


def clock(seconds: float) -> str:
    """Minutes and seconds, and hours if there are any: 0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def columns(text: str) -> int:
    """The width of a text in terminal columns: two for a wide character (such as Chinese), none for a combining one."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def tell(text: object = "", *, err: bool = False, wrap: bool = True) -> None:
    """Print for people: escaped, and fitted to the width of a terminal. `wrap`: whether long lines may be wrapped; not
    for text that people copy into files."""
    stream = sys.stderr if err else sys.stdout
    with contextlib.suppress(*[OSError] * err):  # the terminal may be closed, and there is nowhere to say so
        print(fitted(printable(str(text)), width(stream), wrap), file=stream, flush=True)


def width(stream: TextIO | None) -> int | None:
    """Columns of a stream's terminal; None without a terminal, where lines may have any length."""
    return shutil.get_terminal_size().columns if stream is not None and stream.isatty() else None


def fitted(text: str, width: int | None, wrap: bool = True) -> str:
    """A text fitted to `width` columns: wide tables of `table` are split into tables below one another, and other lines
    are wrapped between words."""
    if width is None or max(map(columns, text.split("\n"))) <= width:
        return text
    parts: list[str] = []
    for of_table, some in itertools.groupby(text.split("\n"), lambda line: line.startswith("|")):
        lines = list(some)
        if of_table and len(lines) > 1 and set(lines[1]) <= set("|-:"):
            parts.append(_split_table(lines, width))
        else:
            parts += [part for line in lines for part in (_wrap_line(line, width) if wrap else [line])]
    return "\n".join(parts)


def _wrap_line(line: str, width: int) -> list[str]:
    """A wrapped line; all but the first line are indented."""
    further = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(
        line, max(width, 20), subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    ) or [line]


def _split_table(lines: list[str], width: int) -> str:
    """A table split into several, each with the leading columns of words, with blank lines between them."""
    rows = [CELL_ENDS.split(line)[1:-1] for line in lines]
    rules = rows[1]
    words = [*itertools.takewhile(lambda place: not rules[place].endswith(":"), range(len(rules) - 1))]
    pieces: list[list[int]] = [[*words]]
    for place in range(len(words), len(rules)):
        if pieces[-1] != words and sum(len(rules[one]) + 1 for one in (*pieces[-1], place)) >= width:
            pieces.append([*words])
        pieces[-1].append(place)
    return "\n\n".join("\n".join(f"|{'|'.join(row[one] for one in piece)}|" for row in rows) for piece in pieces)


def table(rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """Rows of cells, the first row the header. The first `texts` columns hold words, aligned left; the others hold
    numbers. A cell stays on one line and in its column: line ends become spaces, `|` is escaped."""
    cells = [[" ".join(cell.splitlines()).replace("|", r"\|") for cell in row] for row in rows]
    widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        padded_cells = [
            padded(cell, width, right=place >= texts)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded_cells)} |"

    rules = ["-" * (width + 2) if place < texts else "-" * (width + 1) + ":" for place, width in enumerate(widths)]
    return "\n".join([line(cells[0]), f"|{'|'.join(rules)}|", *map(line, cells[1:])])


def padded(text: str, width: int, right: bool = False) -> str:
    """The text padded with blanks to `width` columns; with `right`, aligned right."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


def number(value: float | None) -> str:
    """Two decimals; "-" for an unknown value. A rounded zero has no minus."""
    return "-" if value is None else f"{value:z.2f}"


def html_table(rows: Sequence[Sequence[str]], notes: Sequence[str] = (), caption: str = "") -> str:
    """Rows of cells as HTML, for notebooks: the first row the header, notes below the table. All texts are escaped."""
    lines = [
        "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(("th", *["td"] * len(rows)), rows, strict=False)
    ]
    above = [f"<caption>{escape(caption)}</caption>"] if caption else []
    return "\n".join(["<table>", *above, *lines, "</table>", *(f"<p>{escape(note)}</p>" for note in notes)])
