"""The reference of all recipe keys in Markdown (values, defaults, descriptions), from the models of installed parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..configs import Config
from ..decoding import Decoding
from ..registry import KINDS, Part, Registry
from .json_schema import decoding_classes, optional_schema
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
    lines = [
        "# Recipes: every key",
        "",
        "Defaults are those of the code; `mmgen show RECIPE` prints a recipe with all of them.",
        "",
    ]
    tables = {*PARTS, *NAMED_PARTS, *TABLES, "decoding", "steps", "profile"}
    lines += ["## The recipe", "", *_key_table(Recipe, leave_out=tables)]
    for name, cls in TABLES.items():
        lines += ["", f"## [{name}]", "", *_about_lines(cls), *_key_table(cls)]
    for decoding, generators in decoding_classes(registry).items():
        of = "" if decoding is Decoding else f" of {', '.join(generators)}"
        lines += ["", f"## [decoding]{of}", "", *_about_lines(decoding), *_key_table(decoding)]
    lines += ["", "## [steps.NAME]", "", *_about_lines(Step), *_key_table(Step, leave_out={"training", "decoding"})]
    lines += [
        "",
        f"`training` overrides any of {', '.join(f'`{key}`' for key in Training.model_fields)} for this step; "
        "`decoding` overrides keys of [decoding] for its texts.",
    ]
    lines += [
        "",
        "## A data set among several",
        "",
        *_about_lines(SourceConfig),
        *_key_table(SourceConfig, leave_out={"data"}),
    ]
    for kind, (_, config) in KINDS.items():
        if not config.in_recipes:
            continue
        lines += ["", f"## {kind.capitalize()}s: {place(kind)}", ""]
        for part in registry.of_kind(kind):
            lines += _part_section(part)
    return "\n".join(lines).rstrip() + "\n"


def place(kind: str) -> str:
    """Where a recipe or a command names the parts of a kind."""
    places = {kind: f"[{table}]" for table, kind in PARTS.items()}
    places |= {kind: f"[{table}.NAME]" for table, kind in NAMED_PARTS.items()}
    return places.get(kind) or KINDS[kind][1].place or f"a table `{kind}` inside an input"


def _part_section(part: Part) -> list[str]:
    return [
        f'### type = "{part.name}"',
        "",
        *_about_lines(part.config),
        *_key_table(part.config, leave_out={"type"}),
        "",
        f"From {part.source}.",
        "",
    ]


def about(cls: type[Config]) -> str:
    """A config's docstring, in one line."""
    return " ".join(line.strip() for line in (cls.__doc__ or "").strip().splitlines() if line.strip())


def keys(cls: type[Config]) -> list[tuple[str, str, str, str]]:
    """The keys of a part's table: name, allowed values, default as TOML writes it (empty without one), description."""
    rows = [(name, schema) for name, schema in optional_schema(cls)["properties"].items() if name != "type"]
    return [
        (
            name,
            "required: " * cls.model_fields[name].is_required() + _describe_values(schema),
            _default_as_toml(cls, name, schema),
            _description(schema),
        )
        for name, schema in rows
    ]


def _about_lines(cls: type[Config]) -> list[str]:
    return [about(cls), ""] if about(cls) else []


def _key_table(cls: type[Config], leave_out: frozenset[str] | set[str] = frozenset()) -> list[str]:
    rows = [(name, schema) for name, schema in optional_schema(cls)["properties"].items() if name not in leave_out]
    if not rows:
        return ["No keys."]
    return ["| key | value | default | |", "|---|---|---|---|", *_key_rows(cls, rows)]


def _key_rows(cls: type[Config], rows: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    for name, schema in rows:
        required = cls.model_fields[name].is_required()
        default = "required" if required else _as_code(_default_as_toml(cls, name, schema))
        description = re.sub(r"([|*])", r"\\\1", _description(schema))
        yield f"| `{name}` | {_describe_values(schema)} | {default} | {description} |"


def _default_as_toml(cls: type[Config], name: str, schema: dict[str, Any]) -> str:
    default = None if cls.model_fields[name].is_required() else schema.get("default")
    return "" if default in (None, [], {}) else _as_toml(default)


def _description(schema: dict[str, Any]) -> str:
    return str(schema.get("description", ""))


def _describe_values(schema: dict[str, Any]) -> str:
    """The allowed values, in words."""
    if "$ref" in schema:
        return f"a table: {schema['$ref'].rpartition('/')[2]}"
    if "anyOf" in schema:
        return " or ".join(_describe_values(choice) for choice in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(_as_code(_as_toml(choice)) for choice in schema.get("enum", [schema.get("const")]))
    bounds = [f"{word} {_format_bound(schema[key])}" for key, word in BOUNDS.items() if key in schema]
    return ", ".join([WORDS.get(schema.get("type", ""), "anything"), *bounds])


def _format_bound(value: float) -> float:
    """A bound as it is written in the code: pydantic before 2.10 makes 0.0 of 0."""
    return int(value) if float(value).is_integer() else value


def _as_toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def _as_code(text: str) -> str:
    return f"`{text}`" if text else ""
