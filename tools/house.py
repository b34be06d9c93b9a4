"""The figures of the house: `python -m tools.house` prints them, `--write` writes the summary into CONTRIBUTING.md.
`--modules` prints what every module is about.

Sizes are lines of files, including docstrings and blank lines. Nothing here is a limit: long files and functions
should be seen, not squeezed."""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG_FILE, LONG_FUNCTION = 250, 40  # lines
PAGES = (".html", ".css", ".js")
PARAGRAPH = "\n\n"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@dataclass
class Part:
    """A room of the core, a plugin, or one of the folders beside them.

    width     files of its widest folder
    any       annotations that are exactly `Any`
    texts     raise statements with a text of their own
    untested  modules of the core and of plugins without a test file of their name (see `test_of`)
    """

    name: str
    files: int = 0
    lines: int = 0
    width: int = 0
    any: int = 0
    texts: int = 0
    untested: int = 0
    long_files: list[tuple[str, int]] = field(default_factory=list)
    long_functions: list[tuple[str, int]] = field(default_factory=list)


def measure(name: str, paths: list[Path], root: Path = ROOT) -> Part:
    """The figures of some files of Python."""
    figures = Part(name, files=len(paths))
    figures.width = max(Counter(path.parent for path in paths).values(), default=0)
    for path in paths:
        text = path.read_text(encoding="utf-8")
        lines, tree = text.count("\n"), ast.parse(text)
        figures.lines += lines
        figures.untested += (test := test_of(path, root)) is not None and not test.exists()
        if lines > LONG_FILE:
            figures.long_files.append((str(path.relative_to(root)), lines))
        for node in ast.walk(tree):
            figures.any += sum(isinstance(name, ast.Name) and name.id == "Any" for name in annotations(node))
            figures.texts += has_text(node)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and length(node) > LONG_FUNCTION:
                figures.long_functions.append((f"{path.relative_to(root)}:{node.lineno} {node.name}", length(node)))
    return figures


def test_of(path: Path, root: Path = ROOT) -> Path | None:
    """The folder and name of a module's tests: those of `mmgen/ROOM/X.py` in `tests/ROOM/test_X.py`, those of
    `plugins/mmgen_P/X.py` in `tests/plugins/P/test_X.py`. None for modules without tests of their name."""
    folder, *inner = path.relative_to(root).parts
    if folder not in ("mmgen", "plugins") or path.stem in ("__init__", "__main__"):
        return None
    if folder == "plugins":
        inner = ["plugins", inner[0].removeprefix("mmgen_"), *inner[1:]]
    return root.joinpath("tests", *inner[:-1], f"test_{path.name}")


def annotations(node: ast.AST) -> Iterator[ast.expr | None]:
    """The annotations of a module: those after a colon and those after an arrow."""
    if isinstance(node, ast.AnnAssign | ast.arg):
        yield node.annotation
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.returns


def has_text(node: ast.AST) -> bool:
    """Whether a node raises an error with a message."""
    return (
        isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and any(isinstance(inner, ast.Constant | ast.JoinedStr) for inner in node.exc.args)
    )


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of lines of a function, without its decorators."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def python_files(folder: Path) -> list[Path]:
    """All Python files of a folder and its subfolders."""
    return sorted(folder.rglob("*.py"))


def rooms(root: Path = ROOT) -> list[Part]:
    """The parts of the core: its top level, then its rooms by name."""
    folders = sorted(path.parent for path in (root / "mmgen").glob("*/__init__.py"))
    top = measure("top level", sorted((root / "mmgen").glob("*.py")), root)
    return [top, *(measure(folder.name, python_files(folder), root) for folder in folders)]


def plugins(root: Path = ROOT) -> list[Part]:
    folders = sorted(path.parent for path in (root / "plugins").glob("*/__init__.py"))
    return [measure(folder.name, python_files(folder), root) for folder in folders]


def page_lines(root: Path = ROOT) -> int:
    """The number of lines of HTML, CSS and JS in core and plugins."""
    paths = [path for folder in ("mmgen", "plugins") for path in (root / folder).rglob("*") if path.suffix in PAGES]
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def total(name: str, parts: list[Part]) -> Part:
    """The sums over parts; the widest folder of all."""
    sums = {key: sum(getattr(part, key) for part in parts) for key in ("files", "lines", "any", "texts", "untested")}
    files = [long for part in parts for long in part.long_files]
    functions = [long for part in parts for long in part.long_functions]
    return Part(name, **sums, width=max(part.width for part in parts), long_files=files, long_functions=functions)


def totals(root: Path = ROOT) -> list[Part]:
    """Totals of the core, the plugins, both, and everything else."""
    core, ours = total("core", rooms(root)), total("plugins", plugins(root))
    rest = [measure(name, python_files(root / name), root) for name in ("tests", "tools")]
    return [core, ours, total("core and plugins", [core, ours]), *rest]


def table(parts: list[Part]) -> list[str]:
    """A Markdown table, one row per part."""
    columns = ["files", "lines", "widest folder", f"files over {LONG_FILE} lines", f"functions over {LONG_FUNCTION}"]
    columns += ["`Any`", "errors with a text", "without a test of the same name"]
    rows = [
        (part.files, f"{part.lines:,}", part.width, len(part.long_files), len(part.long_functions))
        + (part.any, part.texts, part.untested)
        for part in parts
    ]
    lines = [f"| {part.name} | {' | '.join(map(str, row))} |" for part, row in zip(parts, rows, strict=True)]
    return [f"| | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns), *lines]


def summary(root: Path = ROOT) -> str:
    """The summary for CONTRIBUTING.md: a table of totals, and the sizes of rooms and plugins."""
    sizes = [", ".join(f"{part.name} {part.lines:,}" for part in parts) for parts in (rooms(root), plugins(root))]
    lines = [
        *table(totals(root)),
        "",
        f"Pages (html, css, js): {page_lines(root):,} lines. Lines by room: {sizes[0]}.",
        f"Lines by plugin: {sizes[1]}.",
        f"`Any` by room: {', '.join(f'{room.name} {room.any}' for room in rooms(root))}.",
    ]
    return "\n".join(lines)


def written(root: Path = ROOT) -> dict[str, int]:
    """The lines of each total as written in CONTRIBUTING.md."""
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.partition(BEGIN)[2].partition(END)[0].splitlines()]
    return {row[0]: int(row[2].replace(",", "")) for row in rows if len(row) > 2 and row[2].replace(",", "").isdigit()}


def write(root: Path = ROOT) -> None:
    """Write the summary between the two marks. Raises ValueError without the marks."""
    path = root / "CONTRIBUTING.md"
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path}: has no lines {BEGIN} and {END}; the summary goes between them")
    path.write_text(f"{before}{BEGIN}\n{summary(root)}\n{END}{after}", encoding="utf-8")


def report(root: Path = ROOT) -> str:
    """The full report: totals, rooms, plugins, and long files and functions."""
    both = total("core and plugins", [*rooms(root), *plugins(root)])
    lines = [summary(root), "", *table(rooms(root)), "", *table(plugins(root))]
    for what, longest in (
        (f"Files over {LONG_FILE} lines", both.long_files),
        (f"Functions over {LONG_FUNCTION} lines", both.long_functions),
    ):
        lines += ["", f"{what}: {len(longest)}"]
        lines += [f"{size:6} {name}" for name, size in sorted(longest, key=lambda pair: -pair[1])]
    modules = [path for name in ("mmgen", "plugins") for path in python_files(root / name)]
    lacking = [path for path in modules if (test := test_of(path, root)) is not None and not test.exists()]
    lines += ["", f"Modules without a test of the same name: {len(lacking)}"]
    lines += [f"       {path.relative_to(root)}" for path in lacking]
    return "\n".join(lines)


def modules(root: Path = ROOT) -> str:
    """Every module of the core and of plugins, with the first paragraph of its docstring."""
    lines = []
    for path in (path for name in ("mmgen", "plugins") for path in python_files(root / name)):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines.append(f"{path.relative_to(root)}: {' '.join(text.partition(PARAGRAPH)[0].split())}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the summary into CONTRIBUTING.md")
    parser.add_argument("--modules", action="store_true", help="print what every module is about, and nothing else")
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT, help="another checkout to compare with")
    options = parser.parse_args()
    if options.write:
        write(options.checkout)
    print((modules if options.modules else report)(options.checkout))


if __name__ == "__main__":
    main()
