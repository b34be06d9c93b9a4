"""The command `mmgen plugins`: list all installed parts and failed plugins, or the keys of one part."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

import click

from ..decoding import Decoding
from ..errors import PluginError, did_you_mean
from ..progress import tell, width
from ..registry import KINDS, OURS, Part, Registry, installed
from .lookup import problems

NAMES = 22  # columns for names


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--paths", is_flag=True, help="Also show the file and line of every part.")
@click.option("--strict-plugins", is_flag=True, help="Exit with code 1 if a plugin is broken or two plugins conflict.")
def plugins(names: tuple[str, ...], paths: bool, strict_plugins: bool) -> None:
    """List all installed parts and the plugins that failed to load, or show the keys of the parts named NAME."""
    registry = installed()
    lines = (
        [line for name in names for line in _describe_keys(registry, name, paths)]
        if names
        else _list_parts(registry, paths)
    )
    for line in lines:
        tell(line)
    plugin_errors = dict.fromkeys([*problems(registry), *registry.conflicts()])
    for problem in plugin_errors:
        tell(f"error: {problem}", err=True)
    if strict_plugins and plugin_errors:
        raise click.exceptions.Exit(1)


def _list_parts(registry: Registry, paths: bool) -> Iterator[str]:
    """Lines that list the parts by kind. Parts of other packages are shown with their package."""
    from ..recipe.json_schema import place

    for kind in KINDS:
        parts = registry.of_kind(kind)
        if parts:
            yield f"{kind}s: {place(kind)}"
        for part in parts:
            package = "" if part.source.distribution == OURS else f" ({part.source})"
            yield from _beside_name(part.name, f"{part.summary}{package}", NAMES)
            if paths:
                yield f"{'':<{NAMES + 2}}{part.place}"
        if parts:
            yield ""
    yield "`mmgen plugins NAME` shows the keys of a part."


def _describe_keys(registry: Registry, name: str, paths: bool) -> Iterator[str]:
    """Lines that describe the parts of this name, with keys, values and defaults. Raises PluginError for an unknown
    name."""
    from ..recipe.json_schema import about, keys, place

    parts = [part for part in registry.parts if part.name == name]
    if not parts:
        raise PluginError(
            f"no part is named '{name}'{did_you_mean(name, [part.name for part in registry.parts])}; `mmgen plugins` "
            "lists all parts"
        )
    for part in parts:
        yield f"{part.name}: {part.kind}, {place(part.kind)}"
        yield from _beside_name("", about(part.config), 0)
        yield f"  From {part.source}."
        yield from [f"  {part.place}"] if paths else []
        yield ""
        yield from _keys_of(part, keys(part.config) if part.config.in_recipes else [])
        decoding = getattr(part.config, "decoding", Decoding)
        if decoding is not Decoding:
            yield f"  [decoding] with this {part.kind}: {about(decoding)}"
            yield ""
            yield from _format_keys(keys(decoding))
            yield ""


def _keys_of(part: Part, keys: list[tuple[str, str, str, str]]) -> Iterator[str]:
    if part.config.usage:
        yield f"  {part.config.usage.format(name=part.name)}"
    elif not keys:
        yield "  This part has no keys."
    yield from _format_keys(keys)
    yield ""


def _format_keys(keys: list[tuple[str, str, str, str]]) -> Iterator[str]:
    for name, value, default, description in keys:
        yield from _beside_name(name + (f" = {default}" if default else ""), value.replace("`", ""), NAMES)
        yield from _beside_name("", description, 4)


def _beside_name(name: str, text: str, columns: int) -> list[str]:
    """Lines with a name and, in a column beside it, a text wrapped to the width of the terminal."""
    begin = f"  {name:<{columns}}" if len(name) < columns or not name else f"  {name}  "
    terminal_width = width(sys.stdout)
    if terminal_width is None or not text:
        return [f"{begin}{text}".rstrip()] if begin.strip() or text else []
    return textwrap.wrap(
        text,
        max(terminal_width, columns + 30),
        initial_indent=begin,
        subsequent_indent=" " * (columns + 2),
        break_long_words=False,
    )
