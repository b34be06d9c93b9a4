"""Commands for authors of plugins: plugin new, schema."""

from __future__ import annotations

from pathlib import Path

import click

from ..progress import tell
from ..scaffold import KINDS


@click.group()
def plugin() -> None:
    """Create plugins."""


@plugin.command()
@click.argument("name")
@click.option("--kind", required=True, type=click.Choice(KINDS), help="The kind of part.")
@click.option(
    "--in",
    "parent",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder in which to create the package; by default the current folder.",
)
def new(name: str, kind: str, parent: Path) -> None:
    """Create a Python package with a part named NAME.

    The package can be installed, passes its tests and runs as it is."""
    import shlex

    from ..errors import PluginError
    from ..registry import installed
    from ..scaffold import RECIPE, create
    from .lookup import MODULES

    if kind == "command" and name in MODULES:
        raise PluginError(f"'{name}' is a command of mmgen; choose another name")
    written = create(name, kind, parent, installed())
    for path in written:
        tell(path)
    folder = next(path.parent for path in written if path.name == "pyproject.toml")
    use = f"mmgen run {RECIPE}" if folder / RECIPE in written else f"mmgen {name.removeprefix('mmgen-')} --help"
    tell(f"\nnext:  cd {shlex.quote(str(folder))} && pip install -e . && pytest && {use}")


@click.command()
def schema() -> None:
    """Print the JSON schema of recipes, with every installed part. Editors use the schema to complete and check
    recipes."""
    import json

    from ..recipe.json_schema import schema
    from ..registry import installed

    tell(json.dumps(schema(installed()), indent=2))
