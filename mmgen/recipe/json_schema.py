"""The JSON schema of recipes, from the pydantic models of every installed part: editors complete and check with it.

It describes one layer of a recipe: since `extends`, profiles and `--set` lay tables over one another, nothing is
required in any single file. What a whole recipe lacks, `mmgen check` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ..configs import Config
from ..registry import KINDS, Part, Registry
from .tables import NAMED_PARTS, PARTS, SOURCE_KEYS, TABLES, Recipe, SourceConfig, Step
from .training import Training

Schema = dict[str, Any]
SOURCE = "source"  # the definition of a data set that is one of several
EXTENDED: Schema = {"type": "string", "description": "another profile of the recipe, which this one is laid over"}
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(registry: Registry) -> Schema:
    """Everything that may stand in a recipe file."""
    tables = _tables()
    top = {
        "extends": {"type": "string", "description": "another recipe file that this one is laid over"},
        "profile": {"type": "string", "description": "which of the profiles below is laid over the recipe"},
        "profiles": _named(
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


def _tables() -> dict[str, Schema]:
    """The keys of a recipe, and of a profile."""
    about = {name: info.description for name, info in Recipe.model_fields.items()}
    plain = closed(Recipe)["properties"]
    return {
        **{name: plain[name] for name in ("name", "description", "seed", "output", "jobs")},
        **{name: _reference(kind) for name, kind in PARTS.items()},
        **{name: _named(_reference(kind), about[name] or f"{kind}s by name") for name, kind in NAMED_PARTS.items()},
        **{name: closed(cls) for name, cls in TABLES.items()},
        "steps": _named(_step(), "rows of the table, in order"),
    }


def _step() -> Schema:
    step = closed(Step)
    step["properties"]["training"] = closed(Training)
    description = step["properties"]["data"]["description"]
    several = {"type": "array", "minItems": 1, "items": _reference(SOURCE)}
    step["properties"]["data"] = {"description": description, "anyOf": [_reference("dataset"), several]}
    return step


def _definitions(registry: Registry) -> dict[str, Schema]:
    """A definition a kind, which hands on to that of the part which `type` names."""
    found: dict[str, Schema] = {}
    for kind, (_, config) in KINDS.items():
        if config.in_recipes:
            found |= _kind(kind, registry.names(kind))
    more = {name: schema for name, schema in closed(SourceConfig)["properties"].items() if name in SOURCE_KEYS}
    return found | _kind(SOURCE, registry.names("dataset"), more)


def _kind(kind: str, parts: Mapping[str, Part], more: Schema | None = None) -> dict[str, Schema]:
    """The definitions of a kind and its parts. `more`: keys that every one has besides its own."""
    choices = [{"const": name, "description": f"{part.summary} ({part.source})"} for name, part in parts.items()]
    handed = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"$ref": f"#/$defs/{kind}.{name}"},
        }
        for name in parts
    ]
    types = {"type": "string", "anyOf": choices or [{}]}
    found: dict[str, Schema] = {kind: {"type": "object", "properties": {"type": types}, "allOf": handed}}
    for name, part in parts.items():
        own = closed(part.config)
        found[f"{kind}.{name}"] = {**own, "properties": {**own["properties"], **(more or {})}}
    return found


def closed(config: type[Config]) -> Schema:
    """A config's own keys, all optional; fields that hold a part refer to the kind's definition."""
    made = config.model_json_schema(schema_generator=_OfLayer)
    inner = made.pop("$defs", {})
    kinds = {cls.__name__: kind for kind, (_, cls) in KINDS.items()}
    followed: Schema = _followed(made, inner, kinds)
    return {**followed, "additionalProperties": False}


class _OfLayer(GenerateJsonSchema):
    """pydantic's schema without what a layer cannot be held to: nothing is required, and TOML has no null. Titles only
    repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> Schema:
        made = super().model_schema(schema)
        return {key: value for key, value in made.items() if key not in ("title", "required")}

    def nullable_schema(self, schema: Any) -> Schema:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Schema:
        made = super().default_schema(schema)
        return {key: value for key, value in made.items() if key != "default" or value is not None}


def _followed(value: Any, inner: Mapping[str, Schema], kinds: Mapping[str, str]) -> Any:
    """A schema whose references are to the kinds' definitions alone."""
    if isinstance(value, list):
        return [_followed(one, inner, kinds) for one in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        described = {key: one for key, one in value.items() if key == "description"}
        return {**(_reference(kinds[name]) if name in kinds else _followed(inner[name], inner, kinds)), **described}
    return {key: _followed(one, inner, kinds) for key, one in value.items()}


def _reference(kind: str) -> Schema:
    return {"$ref": f"#/$defs/{kind}"}


def _named(table: Schema, description: str) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": table}
