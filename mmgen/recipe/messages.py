"""Messages about wrong values: one sentence for each type of pydantic's errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..configs import Config
from ..decoding import Decoding, DecodingConfig
from ..errors import did_you_mean
from .tables import MODULE, NAME

NAMES = {
    NAME: "a name must start with a letter, a digit or '_', and contain only letters, digits, '_', '-' and '.'",
    MODULE: "a name must start with a letter, a digit or '_', and contain only letters, digits, '_' and '-'",
}
KINDS = {  # the first word of an error's type -> what the value must be
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "a string in quotation marks",
    "path": "a path in quotation marks",
    "list": "a list, [...]",
    "tuple": "a list, [...]",
    "dict": "a table",
    "model": "a table",
}
BOUNDS = {
    "greater_than_equal": ("ge", "at least {}"),
    "greater_than": ("gt", "more than {}"),
    "less_than_equal": ("le", "at most {}"),
    "less_than": ("lt", "less than {}"),
    "multiple_of": ("multiple_of", "a multiple of {}"),
}


def describe_mistake(
    cls: type[Config], mistake: Mapping[str, Any], more_keys: Iterable[str] = ()
) -> tuple[tuple[str, ...], str]:
    """The key that a pydantic error is about, within a config's table, and the message about its value. `more_keys`:
    keys of the table besides the config's."""
    key, text = tuple(str(name) for name in mistake["loc"]), mistake_text(mistake)
    if mistake["type"] == "extra_forbidden":
        fields = ", ".join(cls.model_fields)
        keys = f"; the keys are: {fields}" if issubclass(cls, DecodingConfig) and cls is not Decoding else ""
        return key, f"no such key{did_you_mean(key[-1], [*more_keys, *cls.model_fields]) or keys}"
    if mistake["type"] == "missing" and isinstance(mistake["loc"][-1], int):
        return key[:-1], f"must have {mistake['loc'][-1] + 1} entries"
    named, _, rest = text.partition(": ")  # a message about a config may begin with a key and a colon
    if mistake["type"] == "value_error" and isinstance(mistake["input"], dict) and rest and named in cls.model_fields:
        return (*key, named), rest
    return key, text


def mistake_text(mistake: Mapping[str, Any]) -> str:
    """The message about the value of a pydantic error."""
    kind, context, value = mistake["type"], mistake.get("ctx", {}), _toml_text(mistake["input"])
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return str(context["error"])
    if kind in BOUNDS:
        bound, words = BOUNDS[kind]
        limit = context[bound]
        return f"must be {words.format(f'{limit:g}' if isinstance(limit, float) else limit)}, not {value}"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        expected = re.sub("True|False", lambda word: word[0].lower(), context["expected"])
        return f"must be {expected}, not {value}{did_you_mean(str(mistake['input']), known)}"
    if context.get("min_length") == 1:
        return "must not be empty"
    if kind.endswith(("too_short", "too_long")):
        bound = f"at least {context['min_length']}" if "min_length" in context else f"at most {context['max_length']}"
        unit = "characters" if kind.startswith("string") else "entries"
        return f"must have {bound} {unit}, not {len(mistake['input'])}"
    if kind == "string_pattern_mismatch":
        return f"{NAMES.get(context['pattern']) or 'must match ' + context['pattern']}, not {value}"
    if kind.split("_")[0] in KINDS:
        return f"must be {KINDS[kind.split('_')[0]]}, not {value}"
    text: str = mistake["msg"].removeprefix("Assertion failed, ").removeprefix("Input ")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _toml_text(value: Any) -> str:
    """A value as TOML writes it, cut at 60 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
