"""Tables and numbers of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table; all columns but the first are aligned right."""
    lines = [_row(header), "|---|" + "---:|" * (len(header) - 1)]
    return [*lines, *(_row(row) for row in rows)]


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", r"\|") for cell in cells) + " |"


def share(part: float | None) -> str:
    """A share as a percentage; a dash for None."""
    return "-" if part is None else f"{part:.1%}"


def goal(seconds: float, target: float, on_gpu: bool) -> str:
    """Whether a goal was reached; empty for a CPU."""
    return f"under {target:g} s: {'reached' if seconds < target else 'missed'}" if on_gpu else "-"
