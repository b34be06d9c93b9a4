"""Which inputs have features from random weights: remarks, since a reader of results must know."""

from __future__ import annotations

from collections.abc import Mapping

from ..configs import EmbedderConfig, FeaturesConfig
from ..errors import MmgenError
from .fingerprints import RANDOM, in_words, is_random
from .store import FeatureStore


def random_features(inputs: Mapping[str, EmbedderConfig]) -> dict[str, str]:
    """Input -> a remark with its extractor, for inputs whose features come from random weights. Stores that cannot be
    read are left out."""
    named = {name: _random_extractor(config) for name, config in inputs.items() if isinstance(config, FeaturesConfig)}
    return {name: f"features of {extractor}: {RANDOM}" for name, extractor in named.items() if extractor}


def _random_extractor(config: FeaturesConfig) -> str:
    """The extractor and its model, or "" if its weights are not random, or unknown."""
    if config.features is None:
        extractor = config.extractor
        random = extractor is not None and extractor.is_random()
        return f"{extractor.type} {getattr(extractor, 'model', '')}".strip() if extractor and random else ""
    try:
        fingerprint = FeatureStore(config.features).fingerprint
    except MmgenError:
        return ""
    return in_words(fingerprint) if is_random(fingerprint) else ""
