"""Fingerprints of features: the extractor and settings that made them; whether two are the same, how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..configs import EmbedderConfig, FeaturesConfig
from ..registry import installed

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


def is_imported(fingerprint: Mapping[str, object]) -> bool:
    """Whether features come from a published file, whose fingerprint names the reader of the file, not a network."""
    part = installed().names("extractor").get(str(fingerprint.get("extractor")))
    return part is not None and getattr(part.config, "source", "") == "file"


def is_random(fingerprint: Any) -> bool:
    """Whether features come from a network with random weights: a fingerprint with "weights": "random" at any depth."""
    if not isinstance(fingerprint, Mapping):
        return False
    return fingerprint.get("weights") == "random" or any(map(is_random, fingerprint.values()))


def random_features(inputs: Mapping[str, EmbedderConfig]) -> dict[str, str]:
    """Input -> a remark with its extractor, for inputs whose extractor has random weights."""
    extractors = {name: config.extractor for name, config in inputs.items() if isinstance(config, FeaturesConfig)}
    return {
        name: f"features of {extractor.type} {getattr(extractor, 'model', '')}: {RANDOM}"
        for name, extractor in extractors.items()
        if extractor is not None and extractor.is_random()
    }
