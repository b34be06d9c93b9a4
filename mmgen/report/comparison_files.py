"""Files of a comparison: its scores as CSV, its tables as LaTeX or Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import RunError
from ..files import write_text
from .compare import RunComparison
from .table import Spread

SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
LATEX = str.maketrans({**SPECIAL, **{sign: f"\\{sign}" for sign in "&%$#_{}"}})


def check_file(path: Path | None) -> None:
    """Raises RunError for a file that `write_comparison` could not write."""
    if path is not None and path.suffix not in WRITERS:
        raise RunError(f"--out {path}: the name must end in {', '.join([*WRITERS][:-1])} or {[*WRITERS][-1]}")


def write_comparison(comparison: RunComparison, path: Path) -> None:
    """Write a comparison in the format that the name's ending says. Raises RunError."""
    check_file(path)
    write_text(path, WRITERS[path.suffix](comparison))


def _as_csv(comparison: RunComparison) -> str:
    """A line for each score: run, step, score, mean, deviation (empty for a single seed). Unknown scores are left
    out."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("run", "step", "score", "mean", "deviation"))
    for run, steps in comparison.scores.items():
        for step, values in steps.items():
            for name, value in values.items():
                if value is not None:
                    mean, deviation = (value.mean, value.deviation) if isinstance(value, Spread) else (value, "")
                    writer.writerow((run, step, name, mean, deviation))
    return text.getvalue()


def _as_latex(comparison: RunComparison) -> str:
    """Tables of the package booktabs; what else is printed becomes comments."""
    parts = [_as_latex_comment(part) if isinstance(part, str) else _latex_tabular(part) for part in comparison.sections]
    return "\n\n".join(["% needs \\usepackage{booktabs}", *parts]) + "\n"


def _as_latex_comment(text: str) -> str:
    return "\n".join(f"% {line}" for line in text.splitlines())


def _latex_tabular(rows: Sequence[Sequence[str]]) -> str:
    """The first two columns hold words, the others numbers."""
    head, *body = [f"{' & '.join(cell.translate(LATEX) for cell in row)} \\\\" for row in rows]
    columns = "ll" + "r" * (len(rows[0]) - 2)
    return "\n".join(
        [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", head, "\\midrule", *body, "\\bottomrule", "\\end{tabular}"]
    )


def _as_markdown(comparison: RunComparison) -> str:
    return f"{comparison}\n"


WRITERS: Mapping[str, Callable[[RunComparison], str]] = {".csv": _as_csv, ".tex": _as_latex, ".md": _as_markdown}
