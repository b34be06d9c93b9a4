"""The JSON schema of recipes, from the pydantic models of all installed parts, for completion and checks in editors.

The schema describes one layer of a recipe: since `extends`, profiles and `--set` are merged, no key is required in a
single file. `mmgen check` reports keys that the merged recipe lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ..configs import Config, GeneratorConfig
from ..decoding import Decoding, DecodingConfig
from ..registry import KINDS, Part, Registry
from .tables import NAMED_PARTS, PARTS, SOURCE_KEYS, TABLES, Recipe, SourceConfig, Step
from .training import Training

Schema = dict[str, Any]
SOURCE = "source"  # the definition of a data set that is one of several
EXTENDED: Schema = {"type": "string", "description": "another profile of the recipe, which this profile overrides"}
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(registry: Registry) -> Schema:
    """The schema of a recipe file."""
    tables = _table_schemas(registry)
    top = {
        "extends": {"type": "string", "description": "another recipe file, which this file overrides"},
        "profile": {"type": "string", "description": "the profile that overrides the recipe"},
        "profiles": _named_tables(
            {"type": "object", "properties": {"extends": EXTENDED, **tables}, "additionalProperties": False},
            "layers to choose from with --profile",
        ),
    }
    return {
        "$schema": DRAFT,
        "title": "mmgen recipe",
        "type": "object",
        "properties": {**top, **tables},
        "additionalProperties": False,
        "$defs": _definitions(registry),
    }


def decoding_classes(registry: Registry) -> dict[type[DecodingConfig], list[str]]:
    """The classes of [decoding] -> the generators that name them; transformers' names come first."""
    classes: dict[type[DecodingConfig], list[str]] = {Decoding: []}
    for part in registry.of_kind("generator"):
        if issubclass(part.config, GeneratorConfig):
            classes.setdefault(part.config.decoding, []).append(part.name)
    return classes


def _table_schemas(registry: Registry) -> dict[str, Schema]:
    """The keys of a recipe, and of a profile."""
    about = {name: info.description for name, info in Recipe.model_fields.items()}
    plain = optional_schema(Recipe)["properties"]
    return {
        **{name: plain[name] for name in ("name", "description", "seed", "output", "jobs", "default_step")},
        **{name: _reference(kind) for name, kind in PARTS.items()},
        **{
            name: _named_tables(_reference(kind), about[name] or f"{kind}s by name")
            for name, kind in NAMED_PARTS.items()
        },
        **{name: optional_schema(cls) for name, cls in TABLES.items()},
        "decoding": _decoding_schema(registry),
        "steps": _named_tables(_step_schema(registry), "rows of the table, in order"),
    }


def _decoding_schema(registry: Registry) -> Schema:
    """The keys of all classes of [decoding], since the generator may stand in another layer of the recipe. With one
    object, an editor marks the wrong key and not the table. `mmgen check` refuses keys of another generator's class."""
    first, *rest = (optional_schema(cls) for cls in decoding_classes(registry))
    keys: dict[str, list[Schema]] = {name: [schema] for name, schema in first["properties"].items()}
    for schema in rest:
        for name, value in schema["properties"].items():
            keys.setdefault(name, []).append(value)
    properties = {name: values[0] if len(values) == 1 else {"anyOf": values} for name, values in keys.items()}
    return {**first, "properties": properties}


def _step_schema(registry: Registry) -> Schema:
    step = optional_schema(Step)
    step["properties"] |= {"training": optional_schema(Training), "decoding": _decoding_schema(registry)}
    description = step["properties"]["data"]["description"]
    several = {"type": "array", "minItems": 1, "items": _reference(SOURCE)}
    step["properties"]["data"] = {"description": description, "anyOf": [_reference("dataset"), several]}
    return step


def _definitions(registry: Registry) -> dict[str, Schema]:
    """One definition per kind, which refers to the definition of the part that `type` names."""
    definitions: dict[str, Schema] = {}
    for kind, (_, config) in KINDS.items():
        if config.in_recipes:
            definitions |= _kind_definitions(kind, registry.names(kind))
    more = {name: schema for name, schema in optional_schema(SourceConfig)["properties"].items() if name in SOURCE_KEYS}
    return definitions | _kind_definitions(SOURCE, registry.names("dataset"), more)


def _kind_definitions(kind: str, parts: Mapping[str, Part], more: Schema | None = None) -> dict[str, Schema]:
    """The definitions of a kind and its parts. `more`: additional keys of every part."""
    choices = [{"const": name, "description": f"{part.summary} ({part.source})"} for name, part in parts.items()]
    handed = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"$ref": f"#/$defs/{kind}.{name}"},
        }
        for name in parts
    ]
    types = {"type": "string", "anyOf": choices or [{}]}
    conditions: Schema = {"allOf": handed} if handed else {}  # JSON schema allows no empty list
    definitions: dict[str, Schema] = {kind: {"type": "object", "properties": {"type": types}, **conditions}}
    for name, part in parts.items():
        part_schema = optional_schema(part.config)
        definitions[f"{kind}.{name}"] = {**part_schema, "properties": {**part_schema["properties"], **(more or {})}}
    return definitions


def optional_schema(config: type[Config]) -> Schema:
    """A config's schema with all keys optional; fields with a part refer to the definition of its kind."""
    generated = config.model_json_schema(schema_generator=_LayerSchema)
    inner = generated.pop("$defs", {})
    kinds = {cls.__name__: kind for kind, (_, cls) in KINDS.items()}
    followed: Schema = _resolve_references(generated, inner, kinds)
    return followed


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


def _resolve_references(value: Any, inner: Mapping[str, Schema], kinds: Mapping[str, str]) -> Any:
    """A schema whose references all lead to definitions of kinds."""
    if isinstance(value, list):
        return [_resolve_references(entry, inner, kinds) for entry in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        described = {key: entry for key, entry in value.items() if key == "description"}
        return {
            **(_reference(kinds[name]) if name in kinds else _resolve_references(inner[name], inner, kinds)),
            **described,
        }
    return {key: _resolve_references(entry, inner, kinds) for key, entry in value.items()}


def _reference(kind: str) -> Schema:
    return {"$ref": f"#/$defs/{kind}"}


def _named_tables(table: Schema, description: str) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": table}
