"""Run the cells of the notebook docs/tutorial.ipynb, and store their outputs: `python -m tools.tutorial`.

No Jupyter is needed. A cell's last expression is shown as a notebook would show it."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "tutorial.ipynb"
Table = dict[str, Any]  # a notebook, a cell or an output of a cell, in Jupyter's format 4


def code_cells(notebook: Table) -> list[Table]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any], number: int) -> Iterator[Table]:
    """Run the code of a cell in the namespace `names`: what it printed, and the value of its last expression. Errors of
    the code propagate."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    if text := printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
    if value is not None:
        texts = {"text/plain": repr(value)}
        if hasattr(value, "_repr_html_"):
            texts["text/html"] = value._repr_html_()
        data = {kind: text.splitlines(keepends=True) for kind, text in texts.items()}
        yield {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def run_cells(notebook: Table) -> None:
    """Run all cells in order in the current folder, and store their outputs in the notebook."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), 1):
        cell["outputs"] = list(run_cell("".join(cell["source"]), names, number))
        cell["execution_count"] = number


def kinds(output: Table) -> tuple[str, ...]:
    """What kind of output it is: the names of its formats, and the counts of tables, rows and pictures. Numbers and
    texts may differ between machines; kinds may not."""
    data = output.get("data", {"text": output.get("text", "")})
    html = "".join(data.get("text/html", ""))
    return (output["output_type"], *sorted(data), *(f"{html.count(tag)} {tag}" for tag in ("<table", "<tr", "<img")))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    tutorial = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run_cells(tutorial)
    NOTEBOOK.write_text(json.dumps(tutorial, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
