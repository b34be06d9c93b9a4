"""The notebook docs/tutorial.ipynb: `python -m tools.tutorial --write` runs its cells and stores their outputs; without
--write, prints them as text. No Jupyter is needed. A cell's last expression is shown as a notebook would show it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "tutorial.ipynb"
Output = dict[str, Any]  # of a cell, in Jupyter's format 4


def code_cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The cells with code of a notebook, in order."""
    yield from (cell for cell in notebook["cells"] if cell["cell_type"] == "code")


def run_cell(source: str, names: dict[str, Any], number: int) -> list[Output]:
    """Run the code of a cell in the namespace `names`. Returns what it printed, and the value of its last expression.
    Errors of the code propagate."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs = [{"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}]
    outputs = outputs if printed.getvalue() else []
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        data |= {"text/html": _lines(value._repr_html_())} if hasattr(value, "_repr_html_") else {}
        outputs += [{"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}]
    return outputs


def run_cells(notebook: dict[str, Any]) -> list[list[Output]]:
    """The outputs of all cells, run in order in the current folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [run_cell("".join(cell["source"]), names, number) for number, cell in enumerate(code_cells(notebook), 1)]


def kinds(outputs: list[Output]) -> list[tuple[str, ...]]:
    """What kinds of output a cell has: the names of their formats, and the counts of tables, rows and pictures. Numbers
    and texts may differ between machines; kinds may not."""
    described = []
    for output in outputs:
        data = output.get("data", {"text": output.get("text", "")})
        html = "".join(data.get("text/html", ""))
        counts = [f"{html.count(tag)} {tag}" for tag in ("<table", "<tr", "<img") if tag in html]
        described.append((output["output_type"], *sorted(data), *counts))
    return described


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    notebook, before = json.loads(NOTEBOOK.read_text(encoding="utf-8")), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            outputs = run_cells(notebook)
        finally:
            os.chdir(before)
    for number, (cell, cell_outputs) in enumerate(zip(code_cells(notebook), outputs, strict=True), 1):
        cell["outputs"], cell["execution_count"] = cell_outputs, number
        for output in cell_outputs:
            print(f"[{number}]", "".join(output.get("data", {}).get("text/plain", output.get("text", ""))))
    if "--write" in sys.argv[1:]:
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{NOTEBOOK}: written")


if __name__ == "__main__":
    main()
