"""Messages about wrong values: one sentence for each type of pydantic's errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..configs import Config
from ..errors import did_you_mean
from .tables import NAME, NAME_IN_WORDS

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
    cls: type[Config], mistake: Mapping[str, Any], more_keys: Iterable[str] = (), keys: str = ""
) -> tuple[tuple[str, ...], str]:
    """The key that a pydantic error is about, within a config's table, and the message about its value. `more_keys`:
    keys of the table besides the config's. `keys`: the end of the message about a key that resembles none of these."""
    key = tuple(str(name) for name in mistake["loc"])
    kind = mistake["type"]
    if kind == "extra_forbidden":
        return key, f"no such key{did_you_mean(key[-1], [*more_keys, *cls.model_fields]) or keys}"
    if kind == "missing":
        return key, "is missing"
    if kind == "value_error":  # a message of the part, which may begin with a key and a colon
        text = mistake_text(mistake)
        named, _, rest = text.partition(": ")
        return ((*key, named), rest) if not key and rest and named in cls.model_fields else (key, text)
    return key, mistake_text(mistake)


def mistake_text(mistake: Mapping[str, Any]) -> str:
    """The message about the value of a pydantic error."""
    kind, value, context = mistake["type"], mistake["input"], mistake.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in BOUNDS:
        bound, words = BOUNDS[kind]
        return f"must be {words.format(_format_bound(context[bound]))}, not {_toml_text(value)}"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        return f"must be {context['expected']}, not {_toml_text(value)}{did_you_mean(str(value), known)}"
    if kind in ("too_short", "string_too_short"):
        least = context["min_length"]
        return (
            "must not be empty"
            if least == 1
            else f"must have at least {least} {_unit_of_length(kind)}, not {len(value)}"
        )
    if kind in ("too_long", "string_too_long"):
        return f"must have at most {context['max_length']} {_unit_of_length(kind)}, not {len(value)}"
    if kind == "string_pattern_mismatch":
        named = context["pattern"] == f"^{NAME}$"
        return (
            f"{NAME_IN_WORDS}, not {_toml_text(value)}"
            if named
            else f"must match {context['pattern']}, not {_toml_text(value)}"
        )
    if expected := KINDS.get(kind.split("_")[0]):
        return f"must be {expected}, not {_toml_text(value)}"
    text = mistake["msg"].removeprefix("Assertion failed, ").removeprefix("Input ")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _unit_of_length(kind: str) -> str:
    return "characters" if kind.startswith("string") else "entries"


def _format_bound(bound: float) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def _toml_text(value: Any) -> str:
    """A value as TOML writes it, cut at 60 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
