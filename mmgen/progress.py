"""Output for people: progress lines, text fitted to the terminal, aligned tables, numbers, HTML tables of notebooks.

Everything that is printed goes through `tell` or `Bars`: text from outside cannot control the terminal, and wide tables
are fitted to its width. Files and JSON keep texts unchanged. Stages report to a `Progress`.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TextIO

from .errors import printable

LINE = "{desc:<26} {n_fmt:>6}/{total_fmt:<6} {rate_noinv_fmt:<20} {elapsed}<{remaining}{postfix}"  # of a task
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
    """A progress line in a terminal; elsewhere (a log file) a line every `EVERY` seconds and at the end of a task."""

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()

    def say(self, text: str) -> None:
        from tqdm import tqdm

        with tqdm.external_write_mode():
            tell(text)

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        from tqdm import tqdm

        terminal = self.terminal
        bar = tqdm(
            desc=printable(label),
            total=total,
            initial=done,
            unit=f" {unit}",
            file=sys.stdout if terminal else io.StringIO(),
            bar_format=LINE + " {bar:16}" * terminal,
            dynamic_ncols=terminal,
            mininterval=0.1 if terminal else math.inf,
            miniters=1,
            smoothing=0,
        )
        said = time.monotonic()

        def advance(steps: int = 1, text: str = "") -> None:
            nonlocal said
            if text:
                bar.set_postfix_str(printable(text), refresh=False)
            bar.update(steps)
            if not terminal and time.monotonic() - said > EVERY and bar.n != total:  # the last line comes below
                said = time.monotonic()
                self.say(str(bar))

        with bar:
            yield advance
        if not terminal:
            self.say(str(bar))


def columns(text: str) -> int:
    """The width of a text in terminal columns: two for a wide character (such as Chinese), none for a combining one."""
    widths = {"W": 2, "F": 2}
    return sum(
        widths.get(unicodedata.east_asian_width(letter), 1)
        for letter in text
        if unicodedata.category(letter) not in ("Mn", "Me", "Cf")
    )


def tell(text: object = "", *, err: bool = False) -> None:
    """Print for people: escaped, with tables fitted to the width of a terminal."""
    stream = sys.stderr if err else sys.stdout
    with contextlib.suppress(*[OSError] * err):  # the terminal may be closed, and there is nowhere to say so
        print(fitted(printable(str(text)), width(stream)), file=stream, flush=True)


def width(stream: TextIO | None) -> int | None:
    """Columns of a stream's terminal; None without a terminal, where lines may have any length."""
    return shutil.get_terminal_size().columns if stream is not None and stream.isatty() else None


def fitted(text: str, width: int | None) -> str:
    """A text whose tables (of `table`) and the lines around them fit into `width` columns: wide tables are split into
    tables below one another."""
    if width is None:
        return text
    parts: list[str] = []
    for in_table, group in itertools.groupby(text.split("\n"), lambda line: line.startswith("|")):
        lines = [*group]
        if in_table and max(map(columns, lines)) > width and set("".join(lines[1:2])) == set("|-:"):
            parts.append(_split_table(lines, width))
        elif in_table or "\n|-" not in text:
            parts += lines
        else:
            parts += (textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines)
    return "\n".join(parts)


def _split_table(lines: list[str], width: int) -> str:
    """A table split into several, each with the leading columns of words, with blank lines between them."""
    rows = [CELL_ENDS.split(line)[1:-1] for line in lines]
    words = sum(not rule.endswith(":") for rule in rows[1])
    pieces, left = list[list[int]](), 0
    for place, rule in enumerate(rows[1][words:], words):
        left -= len(rule) + 1
        if left < 0 or not pieces:
            pieces.append([*range(words)])
            left = width - 1 - sum(len(rows[1][column]) + 1 for column in (*pieces[-1], place))
        pieces[-1].append(place)
    return "\n\n".join("\n".join(f"|{'|'.join(row[n] for n in piece)}|" for row in rows) for piece in pieces)


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
