"""Tables in Markdown that read as well in a terminal: columns stand under one another, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """Rows of cells, the first row the header. The first `texts` columns hold words and stand to the left, the others
    numbers. A cell stays on its line and in its column: line ends become spaces, `|` is escaped."""
    cells = [[" ".join(cell.splitlines()).replace("|", r"\|") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rules = ["-" * (width + 2) if place < texts else "-" * (width + 1) + ":" for place, width in enumerate(widths)]
    return "\n".join([line(cells[0]), f"|{'|'.join(rules)}|", *map(line, cells[1:])])


def number(value: float | None) -> str:
    """Two decimals; "-" for a value that is not known."""
    return "-" if value is None else f"{value:.2f}"
