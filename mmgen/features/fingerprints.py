"""Fingerprints of features: the extractor and settings that made them; whether two are the same, how they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..configs import EmbedderConfig, FeaturesConfig

RANDOM = "random weights, not pretrained"


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """The differences between two tables, a line each: path: before -> now."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return [
            line
            for key in dict.fromkeys([*before, *now])
            for line in differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if before == now else [f"{path}: {json.dumps(before)} -> {json.dumps(now)}"]


def in_words(fingerprint: Mapping[str, Any]) -> str:
    """A short description of a fingerprint: extractor and model."""
    return " ".join(str(fingerprint[key]) for key in ("extractor", "model") if fingerprint.get(key)) or "unknown"


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
