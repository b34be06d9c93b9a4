"""What pages of the site are not written by hand: every key, every command, the examples and the reference.

A page has a line `<!-- made: keys -->` where what is made goes. It is made from what is installed, so that the site
cannot say what the code does not. Lines that begin with `> In the checkout` say where else it can be read; the site
leaves them out.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from mmgen.cli import main
from mmgen.progress import table
from mmgen.recipe.reference import reference
from mmgen.registry import installed

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mmgen"]  # the public modules
SUITES = "testing"  # has a page of its own


def setup(app) -> dict:
    app.connect("source-read", fill)
    app.connect(
        "env-get-outdated", lambda *_: ["index", "keys", "commands", "examples", "contract", "composition", "suites"]
    )
    return {"parallel_read_safe": True}


def fill(app, page: str, source: list[str]) -> None:
    """Everything a page on the site has that its file in the repository has not."""
    text = re.sub(
        r"^<!-- made: (\w+) ?(.*) -->$", lambda made: MADE[made[1]](*made[2].split()), source[0], flags=re.MULTILINE
    )
    if page == "index":
        text = re.sub(
            r"^.+ <(\w+)>\n",
            lambda line: line[0] if line[1] == "self" or (ROOT / f"docs/{line[1]}.md").exists() else "",
            text,
            flags=re.MULTILINE,
        )
    text = re.sub(r"^> In the checkout.*\n(?:> .*\n)*\n?", "", text, flags=re.MULTILINE)
    source[0] = re.sub(r"\]\(\.\./examples[^)]*\)", "](examples.md)", text)


def keys() -> str:
    return reference(installed()).partition("\n")[2]


def public(tier: str) -> str:
    """The public modules of a tier, "parts" or "scripts", from pyproject.toml; a folder stands for its modules."""
    names = [name for name in PUBLIC[tier] if name != SUITES]
    listed = ", ".join(f"`mmgen.{name}`" for name in names)
    return f"The list: {listed}.\n\n{modules(*(module for name in names for module in _within(name)))}"


def _within(name: str) -> list[str]:
    """A module, or those of a folder that say anything to those who import them."""
    folder = ROOT / "mmgen" / name
    return sorted(f"{name}.{path.stem}" for path in folder.glob("[!_]*.py")) if folder.is_dir() else [name]


def modules(*names: str) -> str:
    """The reference of modules, from their docstrings."""
    return "\n\n".join(f"## mmgen.{name}\n\n```{{eval-rst}}\n.. automodule:: mmgen.{name}\n```" for name in names)


def commands() -> str:
    """Every command with what `--help` says of it."""
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
    parts = [(folder / "README.md").read_text(encoding="utf-8").partition("\n")[2]]
    for package in sorted(path.parent for path in folder.glob("*/pyproject.toml")):
        parts.append((package / "README.md").read_text(encoding="utf-8").replace("# ", "## ", 1))
        for recipe in sorted(package.glob("*.toml")):
            if recipe.name != "pyproject.toml":
                parts.append(f"`{recipe.name}`:\n\n```toml\n{recipe.read_text(encoding='utf-8')}```")
    whole = "\n\n".join(parts).replace("](../docs/", "](")
    return re.sub(r"\]\((?:\.\./)?(mmgen_\w+)\)", lambda link: f"](#{link[1].replace('_', '-')})", whole)


MADE = {"keys": keys, "modules": modules, "public": public, "commands": commands, "examples": examples}
