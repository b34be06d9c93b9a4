"""Means and deviations of stored features and word embeddings, to initialise a layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError
from ..parts import Backbone
from .store import FeatureStore

SAMPLED = 1000  # images that statistics are computed from


def measure(store: FeatureStore, limit: int | None) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each dimension, both (D,), over evenly spaced images of the store."""
    keys = sample(list(store))
    return statistics((store.read(key, limit).features for key in keys), store.width, str(store.path))


def sample(keys: Sequence[str]) -> Sequence[str]:
    """Evenly spaced keys of images, at most `SAMPLED`."""
    return keys[:: -(-len(keys) // SAMPLED) or 1]


def statistics(rows: Iterable[np.ndarray], width: int, place: str) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each dimension, both (D,), over arrays (R, D). `place`: where they come from, for
    errors. Raises DataError for values that are not finite."""
    total, squares, count = np.zeros(width), np.zeros(width), 0
    for row in rows:
        features = row.astype(np.float64)
        total, squares, count = total + features.sum(0), squares + np.square(features).sum(0), count + len(features)
    if not np.isfinite(squares).all():
        raise DataError(f"{place}: features are not finite (NaN or infinite); create them again")
    mean = total / max(count, 1)
    deviation = np.sqrt(np.maximum(squares / max(count, 1) - np.square(mean), 0))
    # without a floor, a dimension that hardly varies would be scaled up into noise
    floor = 1e-2 * max(float(deviation.mean()), 1e-6)
    return torch.from_numpy(mean).float(), torch.from_numpy(np.maximum(deviation, floor)).float()


@torch.no_grad()
def word_scale(backbone: Backbone) -> float:
    """Standard deviation of word embeddings, estimated from one sentence of common words."""
    ids = backbone.encode_text("what is the man in the red shirt doing with the dog on the beach") or [backbone.mask_id]
    device = next(backbone.parameters()).device
    return float(backbone.embed(torch.tensor([ids], device=device)).std())
