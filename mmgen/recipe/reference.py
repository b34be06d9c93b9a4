"""The reference of all recipe keys in Markdown (values, defaults, descriptions), from the models of installed parts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from ..configs import Config, nested_kinds
from ..decoding import Decoding
from ..registry import KINDS, Registry
from .json_schema import decoding_classes, keys_of
from .tables import NAMED_PARTS, PARTS, TABLES, Recipe, SourceConfig, Step
from .training import Training

BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "over",
    "maximum": "at most",
    "exclusiveMaximum": "under",
    "multipleOf": "a multiple of",
}
WORDS = {
    "integer": "whole number",
    "number": "number",
    "string": "string",
    "boolean": "true or false",
    "array": "list",
    "object": "table",
}


def reference(registry: Registry) -> str:
    """Tables of keys: of the recipe, of its plain tables, and of every part by kind."""
    tables = {*PARTS, *NAMED_PARTS, *TABLES, "decoding", "steps", "profile"}
    lines = [
        "# Recipes: every key",
        "",
        "Defaults are those of the code; `mmgen show RECIPE` prints a recipe with all of them.",
        *_section("## The recipe", Recipe, tables, described=False),
    ]
    for name, cls in TABLES.items():
        lines += _section(f"## [{name}]", cls)
    for decoding, generators in decoding_classes(registry).items():
        of = "" if decoding is Decoding else f" of {', '.join(generators)}"
        lines += _section(f"## [decoding]{of}", decoding)
    overrides = "overrides keys of [training] for this step, and `decoding` those of [decoding] for its texts."
    lines += [*_section("## [steps.NAME]", Step, {"training", "decoding"}), "", f"`training` {overrides}"]
    lines += _section("## A data set among several", SourceConfig, {"data"})
    for kind, (_, config) in KINDS.items():
        if not config.in_recipes:
            continue
        lines += ["", f"## {kind.capitalize()}s: {place(kind)}"]
        for part in registry.of_kind(kind):
            lines += [*_section(f'### type = "{part.name}"', part.config), "", f"From {part.source}."]
    return "\n".join(lines) + "\n"


def place(kind: str) -> str:
    """Where a recipe or a command names the parts of a kind."""
    places = {kind: f"[{table}]" for table, kind in PARTS.items()}
    places |= {kind: f"[{table}.NAME]" for table, kind in NAMED_PARTS.items()}
    return places.get(kind) or KINDS[kind][1].place or f"a table `{kind}` inside an input"


def about(cls: type[Config]) -> str:
    """A config's docstring, in one line."""
    return " ".join((cls.__doc__ or "").split())


def keys(cls: type[Config]) -> Iterator[tuple[str, str, str, str]]:
    """The keys of a part's table: name, allowed values, default as TOML writes it (empty without one), description."""
    kinds = nested_kinds(cls)
    for name, schema in keys_of(cls).items():
        required = cls.model_fields[name].is_required()
        values = f"a table: {kinds[name]}" if name in kinds else _describe_values(schema)
        default = None if required else schema.get("default")
        written = "" if default in (None, [], {}) else _as_toml(default)
        if name != "type":
            yield name, "required: " * required + values, written, str(schema.get("description", ""))


def _section(title: str, cls: type[Config], leave_out: Collection[str] = (), described: bool = True) -> list[str]:
    """A heading, what a table is for, and its keys."""
    rows = []
    for name, values, default, description in keys(cls):
        if name not in leave_out:
            shown = "required" if values.startswith("required: ") else f"`{default}`" * bool(default)
            text = re.sub(r"([|*])", r"\\\1", description)
            rows.append(f"| `{name}` | {values.removeprefix('required: ')} | {shown} | {text} |")
    table = ["| key | value | default | |", "|---|---|---|---|", *rows] if rows else ["No keys."]
    return ["", title, "", *([about(cls), ""] if described and about(cls) else []), *table]


def _describe_values(schema: dict[str, Any]) -> str:
    """The allowed values, in words."""
    if "anyOf" in schema:
        return " or ".join(_describe_values(choice) for choice in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{_as_toml(choice)}`" for choice in schema.get("enum", [schema.get("const")]))
    bounds = [f"{word} {_format_bound(schema[key])}" for key, word in BOUNDS.items() if key in schema]
    return ", ".join([WORDS.get(schema.get("type", "object"), "anything"), *bounds])


def _format_bound(value: float) -> float:
    """A bound as it is written in the code: pydantic before 2.10 makes 0.0 of 0."""
    return int(value) if float(value).is_integer() else value


def _as_toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
