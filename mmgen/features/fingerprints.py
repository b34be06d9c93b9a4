"""Fingerprints of features: the extractor and settings that made them; whether two are the same, how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RANDOM = "random weights, not pretrained"


def difference(theirs: Any, ours: Any, sides: tuple[str, str] = ("there", "here"), at: str = "") -> str:
    """The differences between two fingerprints in one line: "key: value there, value here". `sides` names the two."""
    if isinstance(theirs, Mapping) or isinstance(ours, Mapping):
        left, right = (value if isinstance(value, Mapping) else {} for value in (theirs, ours))
        names = [name for name in {**left, **right} if left.get(name) != right.get(name)]
        return "; ".join(
            difference(left.get(name), right.get(name), sides, f"{at}.{name}".lstrip(".")) for name in names
        )
    here, there = ("nothing" if value is None else value for value in (ours, theirs))
    return f"{at}: {there} {sides[0]}, {here} {sides[1]}"


def in_words(fingerprint: Mapping[str, Any]) -> str:
    """A short description of a fingerprint: extractor and model."""
    return " ".join(str(fingerprint[key]) for key in ("extractor", "model") if fingerprint.get(key)) or "unknown"


def is_random(fingerprint: Any) -> bool:
    """Whether features come from a network with random weights: a fingerprint with "weights": "random" at any depth."""
    if not isinstance(fingerprint, Mapping):
        return False
    return fingerprint.get("weights") == "random" or any(map(is_random, fingerprint.values()))
