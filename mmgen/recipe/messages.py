"""Messages about wrong values: pydantic's sentences with the words of TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ..configs import Config
from ..errors import did_you_mean
from .tables import MISTAKE, NAME
from .toml_lines import Key

WORDS = {  # of pydantic -> ours, in order
    "greater than or equal to": "at least",
    "greater than": "more than",
    "less than or equal to": "at most",
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "a valid string": "a string in quotation marks",
    "a valid array": "a list, [...]",
    "a valid tuple": "a list, [...]",
    "a valid ": "a ",
    "an object": "a table",
    "items after validation": "entries",
    "True": "true",
    "False": "false",
}


def wrong_keys(error: ValidationError) -> list[tuple[Key, str]]:
    """The keys and messages of such an error."""
    return [(tuple(map(str, mistake["loc"])), mistake["msg"]) for mistake in error.errors()]


def describe_mistake(cls: type[Config], mistake: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """The key that a pydantic error is about, within a config's table, and the message about its value."""
    key, text = tuple(str(name) for name in mistake["loc"]), mistake_text(mistake)
    if mistake["type"] == "extra_forbidden":
        fields = cls.model_fields if len(key) == 1 else {}
        hint = did_you_mean(key[-1], fields) or "; the keys are: " * bool(fields) + ", ".join(fields)
        return key, f"no such key{hint}"
    named, _, rest = text.partition(": ")  # a message about a config may begin with a key and a colon
    if mistake["type"] == "value_error" and not key and rest and named in cls.model_fields:
        return (named,), rest
    return key, text


def mistake_text(mistake: Mapping[str, Any]) -> str:
    """The message about the value of a pydantic error."""
    kind, context, text = mistake["type"], mistake.get("ctx", {}), str(mistake["msg"])
    if kind == MISTAKE:  # in our words already
        return text
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return str(context["error"])
    if context.get("min_length") == 1:
        return "must not be empty"
    text = re.sub(r"^\w+ should ", "must ", text)
    for word, ours in WORDS.items():
        text = text.replace(word, ours)
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME:
        text = "a name must start with a letter, a digit or '_', and contain only letters, digits, '_' and '-'"
    elif not text.startswith("must be "):
        return text
    value = json.dumps(mistake["input"], ensure_ascii=False, default=str)
    hint = did_you_mean(str(mistake["input"]), re.findall(r"'(.*?)'", text) if kind == "literal_error" else ())
    return f"{text}, not {value if len(value) <= 60 else f'{value[:57]}...'}{hint}"
