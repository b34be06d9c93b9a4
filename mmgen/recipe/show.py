"""Write a resolved recipe as TOML that can be run again, with the origin of every value in a comment."""

from __future__ import annotations

import json
from typing import Any

from ..errors import printable
from .layers import Layered
from .toml_lines import Key
from .training import OVERRIDDEN_BY


def toml(values: dict[str, Any], layers: Layered) -> str:
    """The recipe's tables in order; each value is followed by its origin, or by `default`."""
    lines: list[tuple[str, str]] = (
        [(f"# profile {values['profile']}, already applied", "")] if values["profile"] else []
    )
    _write_table({**values, "profile": None}, (), layers, lines)
    width = min(60, max(len(left) for left, origin in lines if origin))
    return "\n".join(f"{left:<{width}}  # {origin}" if origin else left for left, origin in lines)


def _write_table(values: dict[str, Any], path: Key, layers: Layered, lines: list[tuple[str, str]]) -> None:
    plain = {name: value for name, value in values.items() if not isinstance(value, dict) and value is not None}
    if path and plain:
        lines += [("", ""), (f"[{'.'.join(map(toml_key, path))}]", "")]
    for name, value in plain.items():
        decides = OVERRIDDEN_BY.get(name, "") if path[-1:] == ("training",) else ""
        effect = f"; {decides} decides" if plain.get(decides) else ""
        lines.append((f"{toml_key(name)} = {toml_value(value)}", _origin(layers, (*path, name)) + effect))
    for name, value in values.items():
        if isinstance(value, dict):
            _write_table(value, (*path, name), layers, lines)


def _origin(layers: Layered, path: Key) -> str:
    """The origin of a value; a step's training and decoding are the recipe's unless the step overrides them."""
    if path in layers.origins:
        return layers.origins[path]
    inherited = path[2:] if len(path) == 4 and path[0] == "steps" and path[2] in ("training", "decoding") else ()
    return layers.origins.get(inherited, "default")


def toml_key(name: str) -> str:
    """A key, in quotation marks where TOML needs them."""
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _quote(name)


def toml_value(value: Any) -> str:
    """A value on one line; tables in it are inline tables."""
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{toml_key(name)} = {toml_value(inner)}" for name, inner in value.items() if inner is not None)
            + "}"
        )
    return _quote(value) if isinstance(value, str) else json.dumps(value)


def _quote(text: str) -> str:
    """A TOML string that is safe to print. TOML has no \\x escapes, and JSON does not escape all control characters."""
    spelt = (
        letter if printable(letter) == letter else _escape(letter) for letter in json.dumps(text, ensure_ascii=False)
    )
    return "".join(spelt)


def _escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"\\U{ord(letter):08x}"
