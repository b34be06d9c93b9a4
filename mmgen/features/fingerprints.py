"""Fingerprints of features: what made them, and where two differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def difference(there: Any, ours: Any, sides: tuple[str, str] = ("there", "here"), at: str = "") -> str:
    """Where two fingerprints differ, in a line: key: value there, value here. `sides`: what the two are called."""
    if isinstance(there, Mapping) or isinstance(ours, Mapping):
        one, other = (each if isinstance(each, Mapping) else {} for each in (there, ours))
        names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        each = (difference(one.get(name), other.get(name), sides, f"{at}.{name}".lstrip(".")) for name in names)
        return "; ".join(each)
    told = ", ".join(
        f"{'nothing' if value is None else value} {side}" for value, side in zip((there, ours), sides, strict=True)
    )
    return f"{at}: {told}" if at else told


def in_words(fingerprint: Mapping[str, Any]) -> str:
    """A fingerprint in a few words."""
    words = [str(fingerprint[key]) for key in ("extractor", "model") if fingerprint.get(key)]
    return f"'{' '.join(words) or 'unknown'}'"
