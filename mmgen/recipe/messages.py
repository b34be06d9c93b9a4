"""What is wrong with a value, in our words: one sentence for each of pydantic's types of errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..configs import Config
from ..errors import did_you_mean
from .renamed import new_name
from .tables import NAME, NAME_IN_WORDS

KINDS = {  # the first word of an error's type -> what the value must be
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "a text in quotation marks",
    "path": "a path in quotation marks",
    "list": "a list, [...]",
    "tuple": "a list, [...]",
    "dict": "a table",
    "model": "a table",
}
BOUNDS = {
    "greater_than_equal": ("ge", "{} or more"),
    "greater_than": ("gt", "more than {}"),
    "less_than_equal": ("le", "{} at most"),
    "less_than": ("lt", "less than {}"),
    "multiple_of": ("multiple_of", "a multiple of {}"),
}


def mistaken(cls: type[Config], mistake: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """The key that one of pydantic's errors is about, inside a config's table, and what is wrong with it."""
    key = tuple(str(name) for name in mistake["loc"])
    kind = mistake["type"]
    if kind == "extra_forbidden":
        if today := new_name(key[-1], cls.model_fields):
            return key, f"this key is called '{today}' now"
        return key, f"no such key{did_you_mean(key[-1], cls.model_fields)}"
    if kind == "missing":
        return key, "is missing"
    if kind == "value_error":  # a part's own words; it names the key that they are about before a colon
        text = in_words(mistake)
        named, _, rest = text.partition(": ")
        return ((*key, named), rest) if not key and rest and named in cls.model_fields else (key, text)
    return key, in_words(mistake)


def in_words(mistake: Mapping[str, Any]) -> str:
    """What is wrong with the value that one of pydantic's errors is about."""
    kind, given, context = mistake["type"], mistake["input"], mistake.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in BOUNDS:
        bound, words = BOUNDS[kind]
        return f"must be {words.format(_number(context[bound]))}, not {_shown(given)}"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        return f"must be {context['expected']}, not {_shown(given)}{did_you_mean(str(given), known)}"
    if kind in ("too_short", "string_too_short"):
        least = context["min_length"]
        return "must not be empty" if least == 1 else f"must have {least} {_counted(kind)} at least, not {len(given)}"
    if kind in ("too_long", "string_too_long"):
        return f"must have {context['max_length']} {_counted(kind)} at most, not {len(given)}"
    if kind == "string_pattern_mismatch":
        named = context["pattern"] == f"^{NAME}$"
        return (
            f"{NAME_IN_WORDS}, not {_shown(given)}"
            if named
            else f"must match {context['pattern']}, not {_shown(given)}"
        )
    if wanted := KINDS.get(kind.split("_")[0]):
        return f"must be {wanted}, not {_shown(given)}"
    text = mistake["msg"].removeprefix("Assertion failed, ").removeprefix("Input ")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _counted(kind: str) -> str:
    return "letters" if kind.startswith("string") else "entries"


def _number(bound: float) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def _shown(value: Any) -> str:
    """A value as TOML writes it, short."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
