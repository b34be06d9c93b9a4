"""Statistics that initialise a linear layer in front of an encoder: of the features, and of word embeddings."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError
from ..parts import Backbone
from .multi_file import MultiFileStore
from .store import FeatureStore

SAMPLED = 1000  # images that statistics are computed from


def measure(store: FeatureStore | MultiFileStore, limit: int | None) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each dimension, both (D,), over evenly spaced images of the store."""
    keys = list(store)
    total, squares, count = np.zeros(store.width), np.zeros(store.width), 0
    for key in keys[:: -(-len(keys) // SAMPLED)]:
        features = store.read(key, limit).features.astype(np.float64)
        total, squares, count = total + features.sum(0), squares + np.square(features).sum(0), count + len(features)
    if not np.isfinite(squares).all():
        raise DataError(f"{store.path}: features are not finite (NaN or infinite); create them again")
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
