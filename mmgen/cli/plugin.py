"""Commands for those who extend mmgen: plugin new, schema."""

from __future__ import annotations

from pathlib import Path

import click

from ..progress import tell
from ..scaffold import KINDS


@click.group()
def plugin() -> None:
    """Write plugins of your own."""


@plugin.command()
@click.argument("name")
@click.option("--kind", required=True, type=click.Choice(KINDS), help="What it provides.")
@click.option(
    "--in",
    "parent",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where its folder goes; by default here.",
)
def new(name: str, kind: str, parent: Path) -> None:
    """Write a package with a part called NAME.

    It installs, passes its tests, and runs at once."""
    import shlex

    from ..errors import PluginError
    from ..registry import installed
    from ..scaffold import RECIPE, create
    from .lookup import MODULES

    if kind == "command" and name in MODULES:
        raise PluginError(f"'{name}' is a command of mmgen's own; choose another name")
    written = create(name, kind, parent, installed())
    for path in written:
        tell(path)
    folder = next(path.parent for path in written if path.name == "pyproject.toml")
    use = f"mmgen run {RECIPE}" if folder / RECIPE in written else f"mmgen {name.removeprefix('mmgen-')} --help"
    tell(f"\nnext:  cd {shlex.quote(str(folder))} && pip install -e . && pytest && {use}")


@click.command()
@click.option("--markdown", is_flag=True, help="Print every key as a page to read instead.")
def schema(markdown: bool) -> None:
    """Print the JSON schema of recipes, with every installed part, so that editors complete and check them."""
    import json

    from ..recipe.json_schema import schema
    from ..recipe.reference import reference
    from ..registry import installed

    tell(reference(installed()) if markdown else json.dumps(schema(installed()), indent=2), wrap=False)
