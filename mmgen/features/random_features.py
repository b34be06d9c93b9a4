"""Which inputs have features from random weights: remarks, since a reader of results must know."""

from __future__ import annotations

from collections.abc import Mapping

from ..configs import EmbedderConfig, FeaturesConfig
from .fingerprints import RANDOM


def random_features(inputs: Mapping[str, EmbedderConfig]) -> dict[str, str]:
    """Input -> a remark with its extractor, for inputs whose extractor has random weights."""
    extractors = {name: config.extractor for name, config in inputs.items() if isinstance(config, FeaturesConfig)}
    return {
        name: f"features of {extractor.type} {getattr(extractor, 'model', '')}: {RANDOM}"
        for name, extractor in extractors.items()
        if extractor is not None and extractor.is_random()
    }
