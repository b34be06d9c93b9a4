"""The JSON schema of recipes, from the pydantic models of all installed parts, for completion and checks in editors.

The schema describes one layer of a recipe: since `extends`, profiles and `--set` are merged, no key is required in a
single file. `mmgen check` reports keys that the merged recipe lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from ..configs import Config, DatasetConfig, GeneratorConfig
from ..decoding import Decoding, DecodingConfig
from ..registry import KINDS, Part, Registry
from .tables import Recipe, SourceConfig, Step

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}


def schema(registry: Registry) -> Schema:
    """The schema of a recipe file."""
    parts = {kind: registry.names(kind) for kind, (_, config) in KINDS.items() if config.in_recipes}
    configs = [part.config for named in parts.values() for part in named.values()]
    models = [Recipe, Step, SourceConfig, DecodingConfig, *decoding_classes(registry), *(KINDS[kind][1] for kind in parts), *configs]
    names, generated = models_json_schema([(cls, "validation") for cls in models], schema_generator=_LayerSchema)
    tables: dict[str, Schema] = generated["$defs"]
    at = {cls: reference["$ref"].rpartition("/")[2] for (cls, _), reference in names.items()}
    keys = tables.pop(at[Recipe])["properties"]
    profile = {**keys, "extends": {**TEXT, "description": "another profile of the recipe, which this profile overrides"}}
    profile.pop("profile")
    keys["extends"] = {**TEXT, "description": "another recipe file, which this file overrides"}
    keys["profile"]["description"] = "the profile that overrides the recipe"
    keys["profiles"] = {
        "type": "object",
        "description": "layers to choose from with --profile",
        "additionalProperties": {"type": "object", "properties": profile, "additionalProperties": False},
    }
    tables[at[DecodingConfig]] = _any_of_their_keys([tables[at[cls]] for cls in decoding_classes(registry)])
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


def keys_of(cls: type[Config]) -> dict[str, Schema]:
    """The schemas of a config's keys."""
    keys: dict[str, Schema] = cls.model_json_schema(schema_generator=_LayerSchema)["properties"]
    return keys


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
