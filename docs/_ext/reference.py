"""A Sphinx extension that writes the reference into docs/_generated before a build: the keys of recipes, the commands,
the contract of plugins, and the test suites.

Keys and commands come from mmgen's own parts. The modules of the contract and of `mmgen.testing` are read as text, so
that nothing is imported for them and constants have their docstrings too."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[2]
OURS = "mmgen-framework"
SUITES = "testing"  # has a page to itself
ALIGNED = re.compile(r"\w(?:[\w, ]*\S)? {2,}\S")  # name   what it is


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "_generated"))
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write the pages that are missing or out of date."""
    folder.mkdir(exist_ok=True)
    for name, (opening, page) in PAGES.items():
        path, text = folder / f"{name}.md", f"{opening}\n\n{page().strip()}\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# Keys, commands


def keys(registry: Any = None) -> str:
    """Every key of every part of mmgen's own, or of a registry."""
    from mmgen.configs import nested_kinds
    from mmgen.decoding import Decoding
    from mmgen.recipe.json_schema import decoding_classes, place
    from mmgen.recipe.tables import Recipe, Step
    from mmgen.registry import KINDS, Registry, installed

    ours = tuple(part for part in installed().parts if part.source.distribution == OURS)
    registry = registry or Registry(ours, ())
    sections: dict[str, Any] = {name: Recipe.model_fields[name].annotation for name in ("sequence", "training")}
    tables = {*nested_kinds(Recipe), *sections, "decoding", "steps", "profile"}
    lines = ["Defaults are those of the code; `mmgen show RECIPE` prints a recipe with all of them."]
    lines += _keys("## The recipe", Recipe, tables, described=False)
    for name, cls in sections.items():
        lines += _keys(f"## [{name}]", cls)
    for decoding in decoding_classes(registry):
        parts = registry.names("generator").items()
        generators = [name for name, part in parts if getattr(part.config, "decoding", Decoding) is decoding]
        of = "" if decoding is Decoding else f" of {', '.join(generators)}"
        lines += _keys(f"## [decoding]{of}", decoding)
    overrides = "overrides keys of [training] for this step, and `decoding` those of [decoding] for its texts."
    lines += [*_keys("## [steps.NAME]", Step, {"training", "decoding"}), "", f"`training` {overrides}"]
    for kind, (_, config) in KINDS.items():
        if config.in_recipes:
            lines += ["", f"## {kind.capitalize()}s: {place(kind)}"]
            for part in registry.of_kind(kind):
                lines += [*_keys(f'### type = "{part.name}"', part.config), "", f"From {part.source}."]
    return "\n".join(lines)


def _keys(title: str, cls: Any, leave_out: Collection[str] = (), described: bool = True) -> list[str]:
    """A heading, what a table is for, and its keys."""
    from mmgen.recipe.json_schema import about, keys

    rows = []
    for name, values, default, description in keys(cls):
        if name not in leave_out:
            shown = "required" if values.startswith("required: ") else f"`{default}`" * bool(default)
            text = re.sub(r"([|*])", r"\\\1", description)
            rows.append(f"| `{name}` | {values.removeprefix('required: ')} | {shown} | {text} |")
    table = ["| key | value | default | |", "|---|---|---|---|", *rows] if rows else ["No keys."]
    return ["", title, "", *([about(cls), ""] if described and about(cls) else []), *table]


def commands() -> str:
    """Every command with its `--help`."""
    from mmgen.cli import main

    return "\n\n".join(_command(path, command) for path, command in _walk("mmgen", main))


def _walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Commands below a group, by name."""
    if not isinstance(command, click.Group):
        return
    context = click.Context(command)
    for name in sorted(command.list_commands(context)):
        below = command.get_command(context, name)
        assert below is not None
        yield f"{path} {name}", below
        yield from _walk(f"{path} {name}", below)


def _command(path: str, command: click.Command) -> str:
    from mmgen.progress import table

    context = click.Context(command, info_name=path)
    about = "\n\n".join(" ".join(paragraph.split()) for paragraph in (command.help or "").split("\n\n"))
    usage = command.get_usage(context).removeprefix("Usage: ")
    usage = "" if isinstance(command, click.Group) else f"```text\n{usage}\n```"
    helps = [parameter.get_help_record(context) for parameter in command.params]
    rows = [[f"`{option}`", text] for option, text in filter(None, helps) if text]
    options = table([["option", ""], *rows], texts=2) if rows else ""
    return "\n\n".join(filter(None, [f"#{'#' * path.count(' ')} {path}", usage, about, options]))


# Modules


def contract() -> str:
    """The public modules of parts; a folder stands for its modules."""
    names = [name for name in public() if name != SUITES]
    listed = ", ".join(f"`mmgen.{name}`" for name in names)
    return "\n\n".join([f"The list: {listed}.", *(module(inner) for name in names for inner in _within(name))])


def public() -> list[str]:
    """The modules and folders of mmgen that no contract of import-linter protects from plugins."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    protected = {name for contract in linter["contracts"] for name in contract.get("protected_modules", ())}
    paths = [*(ROOT / "mmgen").glob("[!_]*.py"), *(path.parent for path in (ROOT / "mmgen").glob("*/__init__.py"))]
    return sorted(path.stem for path in paths if f"mmgen.{path.stem}" not in protected)


def suites() -> str:
    """The modules that `mmgen.testing` offers names of, or that have a suite."""
    folder = ROOT / "mmgen" / SUITES
    offered = re.findall(r"^from \.(\w+) import", (folder / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    found = [
        path.stem for path in folder.glob("*.py") if re.search(r"^class \w+Suite\b", path.read_text("utf-8"), re.M)
    ]
    return "\n\n".join(module(f"{SUITES}.{name}") for name in sorted({*offered, *found}))


def _within(name: str) -> list[str]:
    """A module, or the modules of a folder that have public names."""
    folder = ROOT / "mmgen" / name
    return sorted(f"{name}.{path.stem}" for path in folder.glob("[!_]*.py")) if folder.is_dir() else [name]


def module(name: str) -> str:
    """A module's docstring, its documented constants, and its public classes and functions."""
    text = ROOT.joinpath("mmgen", *name.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    constants, functions, classes = [], [], []
    for node, follower in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef) and _public(node.name):
            classes.append(_class(node, lines))
        elif isinstance(node, ast.FunctionDef) and _documented(node):
            functions.append(_function(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and (about := _string(follower)):
            constants.append(_entry(ast.unparse(node), about))
    return "\n\n".join([f"## mmgen.{name}", markdown(ast.get_docstring(tree)), *constants, *functions, *classes])


def _string(node: ast.stmt | None) -> str:
    """The text of a statement that is only a string: the docstring of the constant before it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def _class(node: ast.ClassDef, lines: list[str]) -> str:
    """An entry of a class: its fields as in the source, its methods, and the names of a suite's tests."""
    fields = [inner for inner in node.body if isinstance(inner, ast.AnnAssign) and _public(ast.unparse(inner.target))]
    shown = "\n".join(line[4:] for field in fields for line in lines[field.lineno - 1 : field.end_lineno])
    methods = [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
    tests = [f"`{method.name}`" for method in methods if method.name.startswith("test_")]
    bases = ", ".join(map(ast.unparse, [*node.bases, *(keyword.value for keyword in node.keywords)]))
    calls = [f"`{node.name}({_arguments(method.args)})`" for method in methods if method.name == "__init__"]
    entry = [
        f"### {node.name}",
        f"`class {node.name}({bases})`" if bases else "",
        *calls,
        markdown(ast.get_docstring(node)),
        f"```python\n{shown}\n```" if shown else "",
        *(_function(method) for method in methods if _documented(method)),
        f"Checks: {', '.join(tests)}." if tests else "",
    ]
    return "\n\n".join(filter(None, entry))


def _public(name: str) -> bool:
    return not name.startswith("_")


def _documented(node: ast.FunctionDef) -> bool:
    """Whether a reference lists a function: it is public, no test, and has a docstring."""
    public = _public(node.name) or node.name == "__call__"
    return public and not node.name.startswith("test_") and ast.get_docstring(node) is not None


def _function(node: ast.FunctionDef) -> str:
    """An entry of a function: its signature and docstring."""
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    returns = ast.unparse(node.returns) if node.returns else ""
    if decorators & {"property", "cached_property"}:
        call = f"{node.name}: {returns}"
    else:
        call = f"{node.name}({_arguments(node.args)})" + (f" -> {returns}" if returns else "")
    return _entry(call, ast.get_docstring(node))


def _entry(code: str, docstring: str | None) -> str:
    about = markdown(docstring).replace("\n", "\n  ")
    return re.sub(r"^ +$", "", f"- `{code}`\n\n  {about}", flags=re.MULTILINE)


def _arguments(arguments: ast.arguments) -> str:
    """The parameters of a function, with annotations and defaults, without `self` and `cls`."""
    for group in (arguments.posonlyargs, arguments.args):
        group[:] = [argument for argument in group if argument.arg not in ("self", "cls")]
    return ast.unparse(arguments)


# Docstrings


def markdown(docstring: str | None) -> str:
    """A docstring as Markdown: indented or aligned text keeps its columns, and Markdown's special characters are
    escaped."""
    paragraphs = re.split(r"\n[ \t]*\n", (docstring or "").strip())
    return "\n\n".join(_prose(text) if not _columns(text) else f"```text\n{text}\n```" for text in _blocks(paragraphs))


def _blocks(paragraphs: list[str]) -> list[str]:
    """The paragraphs of a text; an indented block continues over empty lines."""
    blocks: list[str] = []
    for paragraph in filter(None, paragraphs):
        if blocks and blocks[-1].startswith("    ") and paragraph.startswith("    "):
            blocks[-1] += f"\n\n{paragraph}"
        else:
            blocks.append(paragraph)
    return [_dedented(block) for block in blocks]


def _dedented(block: str) -> str:
    """A completely indented block, as fenced code."""
    lines = block.splitlines()
    if not all(line.startswith("    ") for line in lines if line):
        return block
    least = min(len(line) - len(line.lstrip()) for line in lines if line)
    return "```text\n" + "\n".join(line[least:] for line in lines) + "\n```"


def _columns(paragraph: str) -> bool:
    """Whether a block is aligned by hand."""
    lines = paragraph.splitlines()
    return bool(ALIGNED.match(lines[0])) and all(ALIGNED.match(line) or line.startswith("  ") for line in lines)


def _prose(paragraph: str) -> str:
    if paragraph.startswith("```"):
        return paragraph
    pieces = re.split(r"(`[^`]+`)", paragraph)
    return "".join(piece if number % 2 else re.sub(r"([*<\[])", r"\\\1", piece) for number, piece in enumerate(pieces))


PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "keys": (
        "# Every key of a recipe\n\nThe keys of mmgen's own parts. `mmgen plugins NAME` prints those of one part, your"
        " own too.",
        keys,
    ),
    "commands": (
        "# Every command\n\nAn error is one line (what, where, what to do) with exit code 1. Exit code 2 means that the"
        " command was mistyped.",
        commands,
    ),
    "contract": (
        "# The contract of plugins\n\nThe modules that parts of a plugin may import, from their docstrings."
        " [What each part must do](../extend/contracts.md) says which methods to write, and what may change.",
        contract,
    ),
    "suites": (
        "# Test suites and fakes\n\nSubclass the suite of your part, return your config, and run pytest;"
        " [What each part must do](../extend/contracts.md#tests) has the rules.",
        suites,
    ),
}
