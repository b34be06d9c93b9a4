"""The JSON schema of recipes, from the pydantic models of all installed parts, for completion and checks in editors;
and the keys of a part in words.

The schema describes one layer of a recipe: since `extends`, profiles and `--set` are merged, no key is required in a
single file. `mmgen check` reports keys that the merged recipe lacks.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from ..configs import Config, nested_kinds
from ..decoding import Decoding, DecodingConfig
from ..registry import KINDS, Registry
from .show import toml_value
from .tables import Recipe, Step

Schema = dict[str, Any]
MODE: Any = "validation"  # pydantic's


def schema(registry: Registry) -> Schema:
    """The schema of a recipe file. The table of a part has the keys of the part that `type` names, and [decoding] those
    of all generators, since the generator may stand in another layer."""
    kinds = {config: registry.names(kind) for kind, (_, config) in KINDS.items() if config.in_recipes}
    options, parts = decoding_classes(registry), [part.config for named in kinds.values() for part in named.values()]
    models: Any = [(cls, MODE) for cls in (Recipe, Step, DecodingConfig, *options, *kinds, *parts)]
    references, generated = models_json_schema(models, schema_generator=_LayerSchema)
    tables: Schema = generated["$defs"]
    table = {cls: tables[reference["$ref"].rpartition("/")[2]] for (cls, _), reference in references.items()}
    for base, named in kinds.items():
        names = [{"const": name, "description": f"{part.summary} ({part.source})"} for name, part in named.items()]
        cases = [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": references[part.config, MODE],
            }
            for name, part in named.items()
        ]
        table[base].clear()  # JSON schema allows no empty lists
        table[base].update(type="object", properties={"type": {"anyOf": names or [{}]}}, allOf=cases or [{}])
    keys = [(name, value) for cls in reversed(options) for name, value in table[cls]["properties"].items()]
    table[DecodingConfig]["properties"] = dict(keys)
    data = table[Step]["properties"]["data"]
    data["anyOf"] = [data["items"], {key: data.pop(key) for key in ("type", "items")}]
    recipe = tables.pop("Recipe")
    extends = {"type": "string", "description": "another recipe file, or another profile, which this one overrides"}
    layer = {**recipe, "properties": {**recipe["properties"], "extends": extends}}
    recipe["properties"] |= {"extends": extends, "profiles": {"type": "object", "additionalProperties": layer}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **recipe, "$defs": tables}


def decoding_classes(registry: Registry) -> list[Any]:
    """The classes of [decoding]; transformers' names come first."""
    named = (getattr(part.config, "decoding", Decoding) for part in registry.names("generator").values())
    return [*dict.fromkeys((Decoding, *named))]


def place(kind: str) -> str:
    """Where a recipe or a command names the parts of a kind."""
    for table, inner in nested_kinds(Recipe).items():
        if inner == kind:
            return f"[{table}.NAME]" if table.endswith("s") else f"[{table}]"
    return KINDS[kind][1].place or f"a table `{kind}` inside an input"


def about(cls: type[Config]) -> str:
    """A config's docstring, in one line."""
    return " ".join((cls.__doc__ or "").split())


def keys(cls: type[Config]) -> list[tuple[str, str, str, str]]:
    """The keys of a part's table: name, allowed values, default as TOML writes it (empty without one), description."""
    kinds, rows = nested_kinds(cls), []
    for name, schema in cls.model_json_schema(schema_generator=_LayerSchema)["properties"].items():
        if name != "type":
            required = "required: " * cls.model_fields[name].is_required()
            values = f"a table: {kinds[name]}" if name in kinds else _describe_values(schema)
            default = "" if schema.get("default") in (None, [], {}) else toml_value(schema["default"])
            rows.append((name, required + values, default, str(schema.get("description", ""))))
    return rows


class _LayerSchema(GenerateJsonSchema):
    """pydantic's schema for one layer: nothing is required, and TOML has no null."""

    def model_schema(self, schema: Any) -> Schema:
        generated = super().model_schema(schema)
        generated.pop("required", None)
        return generated

    def nullable_schema(self, schema: Any) -> Schema:
        return self.generate_inner(schema["schema"])


def _describe_values(schema: Schema) -> str:
    """The allowed values, in words."""
    if "anyOf" in schema:
        return " or ".join(map(_describe_values, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{toml_value(choice)}`" for choice in schema.get("enum", [schema.get("const")]))
    bounds = [f"{word} {value}" for word, value in schema.items() if "imum" in word]
    return ", ".join([schema.get("type", "table").replace("object", "table"), *bounds])
