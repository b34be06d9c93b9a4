"""The JSON schema of recipes, from the pydantic models of all installed parts, for completion and checks in editors;
and the keys of a part in words.

The schema describes one layer of a recipe: since `extends`, profiles and `--set` are merged, no key is required in a
single file. `mmgen check` reports keys that the merged recipe lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from ..configs import Config, DatasetConfig, GeneratorConfig, nested_kinds
from ..decoding import Decoding, DecodingConfig
from ..registry import KINDS, Part, Registry
from .tables import NAMED_PARTS, PARTS, Recipe, SourceConfig, Step

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
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


def schema(registry: Registry) -> Schema:
    """The schema of a recipe file."""
    parts = {kind: registry.names(kind) for kind, (_, config) in KINDS.items() if config.in_recipes}
    configs = [part.config for named in parts.values() for part in named.values()]
    options, bases = [*decoding_classes(registry)], [KINDS[kind][1] for kind in parts]
    models: list[type[Config]] = [Recipe, Step, SourceConfig, DecodingConfig, *options, *bases, *configs]
    names, generated = models_json_schema([(cls, "validation") for cls in models], schema_generator=_LayerSchema)
    tables: dict[str, Schema] = generated["$defs"]
    at = {cls: reference["$ref"].rpartition("/")[2] for (cls, _), reference in names.items()}
    keys = tables.pop(at[Recipe])["properties"]
    keys["extends"] = {**TEXT, "description": "another recipe file, or profile, which this one overrides"}
    keys["profile"]["description"] = "the profile that overrides the recipe"
    profile = {name: value for name, value in keys.items() if name != "profile"}
    keys["profiles"] = {
        "type": "object",
        "description": "layers to choose from with --profile",
        "additionalProperties": {"type": "object", "properties": profile, "additionalProperties": False},
    }
    tables[at[DecodingConfig]] = _any_of_their_keys([tables[at[cls]] for cls in options])
    own = {name: value for name, value in tables[at[SourceConfig]]["properties"].items() if name != "data"}
    for name, part in parts["dataset"].items():
        table = tables[at[part.config]]
        tables[f"source.{name}"] = {**table, "properties": {**table["properties"], **own}}
    for kind, named in parts.items():
        tables[at[KINDS[kind][1]]] = _by_type(named, {name: at[part.config] for name, part in named.items()})
    tables[at[SourceConfig]] = _by_type(parts["dataset"], {name: f"source.{name}" for name in parts["dataset"]})
    several = tables[at[Step]]["properties"].pop("data")
    one = {"$ref": f"#/$defs/{at[DatasetConfig]}"}
    tables[at[Step]]["properties"]["data"] = {"description": several.pop("description"), "anyOf": [one, several]}
    return {
        "$schema": DRAFT,
        "title": "mmgen recipe",
        "type": "object",
        "properties": keys,
        "additionalProperties": False,
        "$defs": tables,
    }


def decoding_classes(registry: Registry) -> dict[type[DecodingConfig], list[str]]:
    """The classes of [decoding] -> the generators that name them; transformers' names come first."""
    classes: dict[type[DecodingConfig], list[str]] = {Decoding: []}
    for part in registry.of_kind("generator"):
        if issubclass(part.config, GeneratorConfig):
            classes.setdefault(part.config.decoding, []).append(part.name)
    return classes


def place(kind: str) -> str:
    """Where a recipe or a command names the parts of a kind."""
    places = {kind: f"[{table}]" for table, kind in PARTS.items()}
    places |= {kind: f"[{table}.NAME]" for table, kind in NAMED_PARTS.items()}
    return places.get(kind) or KINDS[kind][1].place or f"a table `{kind}` inside an input"


def about(cls: type[Config]) -> str:
    """A config's docstring, in one line."""
    return " ".join((cls.__doc__ or "").split())


def keys(cls: type[Config]) -> list[tuple[str, str, str, str]]:
    """The keys of a part's table: name, allowed values, default as TOML writes it (empty without one), description."""
    kinds, rows = nested_kinds(cls), []
    for name, schema in cls.model_json_schema(schema_generator=_LayerSchema)["properties"].items():
        required = cls.model_fields[name].is_required()
        values = f"a table: {kinds[name]}" if name in kinds else _describe_values(schema)
        default = None if required else schema.get("default")
        written = "" if default in (None, [], {}) else _as_toml(default)
        if name != "type":
            rows.append((name, "required: " * required + values, written, str(schema.get("description", ""))))
    return rows


def _by_type(parts: Mapping[str, Part], names: Mapping[str, str]) -> Schema:
    """The table of a part, as the definition of the part that `type` names. `names`: part -> definition."""
    choices = [{"const": name, "description": f"{part.summary} ({part.source})"} for name, part in parts.items()]
    handed = [
        {
            "if": {"properties": {"type": {"const": part}}, "required": ["type"]},
            "then": {"$ref": f"#/$defs/{name}"},
        }
        for part, name in names.items()
    ]
    conditions: Schema = {"allOf": handed} if handed else {}  # JSON schema allows no empty list
    return {"type": "object", "properties": {"type": {**TEXT, "anyOf": choices or [{}]}}, **conditions}


def _any_of_their_keys(tables: list[Schema]) -> Schema:
    """A table with the keys of all classes of [decoding], since the generator may stand in another layer of the recipe.
    With one object, an editor marks the wrong key and not the table."""
    keys: dict[str, list[Schema]] = {}
    for table in tables:
        for name, value in table["properties"].items():
            keys.setdefault(name, []).append(value)
    properties = {name: values[0] if len(values) == 1 else {"anyOf": values} for name, values in keys.items()}
    return {**tables[0], "properties": properties}


class _LayerSchema(GenerateJsonSchema):
    """pydantic's schema for one layer: nothing is required, and TOML has no null. Titles only repeat names, so they are
    left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> Schema:
        generated = super().model_schema(schema)
        return {key: value for key, value in generated.items() if key not in ("title", "required")}

    def nullable_schema(self, schema: Any) -> Schema:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Schema:
        generated = super().default_schema(schema)
        return {key: value for key, value in generated.items() if key != "default" or value is not None}


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
