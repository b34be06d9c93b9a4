"""Write a resolved recipe as TOML that can be run again, with the origin of every value in a comment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .layers import Layered
from .toml_lines import Key


def toml(values: Mapping[str, Any], layers: Layered) -> str:
    """The recipe's tables in order; each value is followed by its origin, or by `default`."""
    lines = [*_lines({**values, "profile": None}, (), layers)]
    width = min(60, max(len(left) for left, origin in lines if origin))
    applied = [f"# profile {values['profile']}, already applied"] if values["profile"] else []
    return "\n".join(applied + [f"{left:<{width}}  # {origin}" if origin else left for left, origin in lines])


def _lines(values: Mapping[str, Any], path: Key, layers: Layered) -> Iterator[tuple[str, str]]:
    """Lines of a table and of the tables in it, each with its origin."""
    plain = {name: value for name, value in values.items() if not isinstance(value, dict) and value is not None}
    if path and plain:
        yield from (("", ""), (f"[{'.'.join(map(_key, path))}]", ""))
    for name, value in plain.items():
        key = layers.key((*path, name))  # of a step's training and decoding, the recipe's unless the step overrides it
        yield f"{_key(name)} = {toml_value(value)}", layers.origins.get(key, "default")
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _lines(value, (*path, name), layers)


def _key(name: str) -> str:
    """A key, in quotation marks where TOML needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    """A value on one line; tables in it are inline tables. JSON writes strings and numbers as TOML does."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_key(name)} = {toml_value(inner)}" for name, inner in value.items() if inner is not None)
        return f"{{{', '.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)
