"""Write the reference pages of docs/ from the code: `python -m tools.pages` lists outdated pages, `--write` writes
them.

A page has a line `<!-- written by python -m tools.pages: keys -->`. The text above it is written by hand. Below it
is the reference that the line names: keys and commands of mmgen's own parts, the examples, or public modules (listed
in `pyproject.toml`). Modules are read as text, so that nothing is imported for them."""

from __future__ import annotations

import argparse
import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MARK = re.compile(r"^<!-- written by python -m tools\.pages: (\w+) -->$", re.MULTILINE)
OURS = "mmgen-framework"
SUITES = "testing"  # has a page to itself
SUITE_MODULES = (
    "suite embedder extractor backbone writing generator objective dataset metric probe renderer callback command"
    " tiny toy greedy bag"
)
ALIGNED = re.compile(r"\w(?:[\w, ]*\S)? {2,}\S")  # name   what it is


def written(path: Path) -> str:
    """The text of a page with an up-to-date reference."""
    text = path.read_text(encoding="utf-8")
    mark = MARK.search(text)
    assert mark is not None, f"{path.name} has no line that names its reference"
    return f"{text[: mark.end()]}\n\n{REFERENCES[mark[1]]().strip()}\n"


def pages() -> list[Path]:
    """The pages with a reference."""
    return [path for path in sorted(DOCS.glob("*.md")) if MARK.search(path.read_text(encoding="utf-8"))]


# Keys, commands, examples


def keys() -> str:
    """Every key of every part of mmgen's own."""
    from mmgen.recipe.reference import reference
    from mmgen.registry import Registry, installed

    ours = tuple(part for part in installed().parts if part.source.distribution == OURS)
    return reference(Registry(ours, ())).partition("\n")[2]


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
    usage = (
        "" if hasattr(command, "commands") else f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    )
    helps = [parameter.get_help_record(context) for parameter in command.params]
    rows = [[f"`{option}`", text] for option, text in filter(None, helps) if text]
    options = table([["option", ""], *rows], texts=2) if rows else ""
    return "\n\n".join(filter(None, [f"#{'#' * path.count(' ')} {path}", usage, about, options]))


def examples() -> str:
    """The READMEs in examples/, and the recipes beside them."""
    folder = ROOT / "examples"
    parts = [(folder / "README.md").read_text(encoding="utf-8").partition("\n")[2].strip()]
    for package in sorted(path.parent for path in folder.glob("*/pyproject.toml")):
        parts.append((package / "README.md").read_text(encoding="utf-8").replace("# ", "## ", 1).strip())
        for recipe in sorted(package.glob("*.toml")):
            if recipe.name != "pyproject.toml":
                parts.append(f"`{recipe.name}`:\n\n```toml\n{recipe.read_text(encoding='utf-8')}```")
    page = "\n\n".join(parts).replace("](../docs/", "](").replace("](../../docs/", "](")
    return re.sub(r"\]\((?:\.\./)?(mmgen_\w+)\)", lambda link: f"](#{link[1].replace('_', '-')})", page)


# Modules


def contract() -> str:
    return public("parts")


def composition() -> str:
    return public("scripts")


def suites() -> str:
    return "\n\n".join(module(f"{SUITES}.{name}") for name in SUITE_MODULES.split())


def public(tier: str) -> str:
    """The public modules of a tier, "parts" or "scripts"; a folder stands for its modules."""
    house = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mmgen"]
    names = [name for name in house[tier] if name != SUITES]
    listed = ", ".join(f"`mmgen.{name}`" for name in names)
    return "\n\n".join([f"The list: {listed}.", *(module(inner) for name in names for inner in _within(name))])


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
    about = markdown(ast.get_docstring(tree))
    return "\n\n".join([f"## mmgen.{name}", about, *constants, *functions, *classes])


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
    checks = [f"`{method.name}`" for method in methods if method.name.startswith("test_")]
    bases = ", ".join(map(ast.unparse, [*node.bases, *(keyword.value for keyword in node.keywords)]))
    calls = [f"{node.name}({', '.join(_arguments(method.args))})" for method in methods if method.name == "__init__"]
    return "\n\n".join(
        filter(
            None,
            [
                f"### {node.name}",
                f"`class {node.name}({bases})`" if bases else "",
                "".join(f"`{call}`" for call in calls),
                markdown(ast.get_docstring(node)),
                f"```python\n{shown}\n```" if shown else "",
                *(_function(method) for method in methods if _documented(method)),
                f"Checks: {', '.join(checks)}." if checks else "",
            ],
        )
    )


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
        call = f"{node.name}({', '.join(_arguments(node.args))})" + (f" -> {returns}" if returns else "")
    return _entry(call, ast.get_docstring(node))


def _entry(code: str, docstring: str | None) -> str:
    about = markdown(docstring).replace("\n", "\n  ")
    return re.sub(r"^ +$", "", f"- `{code}`\n\n  {about}", flags=re.MULTILINE)


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    """The parameters of a function, with annotations and defaults, without `self` and `cls`."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    for argument, default in zip(positional, [*missing, *arguments.defaults], strict=True):
        if argument.arg not in ("self", "cls"):
            yield _argument(argument, default)
    if arguments.vararg:
        yield f"*{_argument(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwarg:
        yield f"**{_argument(arguments.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None = None) -> str:
    text = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
    return text if default is None else f"{text}{' = ' if argument.annotation else '='}{ast.unparse(default)}"


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


REFERENCES = {
    "keys": keys,
    "commands": commands,
    "examples": examples,
    "contract": contract,
    "composition": composition,
    "suites": suites,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="write the pages that are out of date")
    write = parser.parse_args().write
    outdated = [path for path in pages() if path.read_text(encoding="utf-8") != written(path)]
    for path in outdated:
        if write:
            path.write_text(written(path), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {'written' if write else 'out of date; python -m tools.pages --write'}")
    raise SystemExit(bool(outdated) and not write)


if __name__ == "__main__":
    main()
