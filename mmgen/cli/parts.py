"""Commands for authors of plugins: plugins (all installed parts, or the keys of one), plugin new, schema."""

from __future__ import annotations

import json

import click

from ..decoding import Decoding
from ..errors import PluginError, did_you_mean
from ..progress import tell
from ..registry import KINDS, OURS, Registry, installed
from ..scaffold import KINDS as TEMPLATES
from ..scaffold import create
from ..settings import Config


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--strict-plugins", is_flag=True, help="Exit with code 1 if a plugin is broken or two plugins conflict.")
@click.pass_context
def plugins(context: click.Context, names: tuple[str, ...], strict_plugins: bool) -> None:
    """List all installed parts, or show the keys of a part.

    The list ends with the plugins that failed to load."""
    formatter, registry = context.make_formatter(), installed()
    for name in names:
        _write_keys(formatter, registry, name)
    if not names:
        _write_parts(formatter, registry)
    tell(formatter.getvalue())
    for problem in (failures := problems(registry)):
        tell(f"error: {problem}", err=True)
    if strict_plugins and failures:
        context.exit(1)


def problems(registry: Registry) -> list[str]:
    """One line for each plugin that failed to load, and for each name that several parts have."""
    return [*map(str, registry.broken), *registry.conflicts()]


def _write_parts(formatter: click.HelpFormatter, registry: Registry) -> None:
    """The parts by kind. Parts of other packages are shown with their package."""
    from ..recipe.json_schema import place

    for kind in KINDS:
        with formatter.section(f"{kind}s, {place(kind)}"):
            formatter.write_dl(
                [
                    (part.name, part.summary + f" ({part.source})" * (part.source.distribution != OURS))
                    for part in registry.of_kind(kind)
                ]
            )
    formatter.write("\n`mmgen plugins NAME` shows the keys of a part.")


def _write_keys(formatter: click.HelpFormatter, registry: Registry, name: str) -> None:
    """The parts of this name, with keys, values and defaults. Raises PluginError for an unknown name."""
    from ..recipe.json_schema import about, keys, place

    parts = [part for part in registry.parts if part.name == name]
    if not parts:
        hint = did_you_mean(name, [part.name for part in registry.parts])
        raise PluginError(f"no part is named '{name}'{hint}; `mmgen plugins` lists all parts")
    for part in parts:
        tables: dict[str, type[Config]] = {f"{name}: {part.kind}, {place(part.kind)}": part.config}
        if (decoding := getattr(part.config, "decoding", Decoding)) is not Decoding:
            tables["[decoding] with it"] = decoding
        for title, config in tables.items():
            with formatter.section(title):
                formatter.write_text(about(config))
                formatter.write_paragraph()
                rows = [
                    (key + f" = {default}" * bool(default), f"{values.replace('`', '')}: {description}")
                    for key, values, default, description in keys(config)
                ]
                if rows:
                    formatter.write_dl(rows)
                else:
                    formatter.write_text(part.config.usage.format(name=name) or "This part has no keys.")
        formatter.write(f"\nFrom {part.source}, {part.place}.\n")


@click.group()
def plugin() -> None:
    """Create the package of a new plugin."""


@plugin.command()
@click.argument("name")
@click.option("--kind", required=True, type=click.Choice(TEMPLATES), help="The kind of part.")
def new(name: str, kind: str) -> None:
    """Create a Python package with a part named NAME.

    The package can be installed, passes its tests and runs as it is."""
    for file in (files := create(name, kind, installed())):
        tell(file)
    tell(f"\nnext:  cd {files[0].parts[0]} && pip install -e . pytest && python -m pytest && mmgen run recipe.toml")


@click.command()
def schema() -> None:
    """Print the JSON schema of recipes, for editors.

    It has every installed part. Editors use the schema to complete and check recipes."""
    from ..recipe.json_schema import schema

    tell(json.dumps(schema(installed()), indent=2))
