"""Means and deviations of stored features and word embeddings: to initialise a layer, to recognise unlike pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError
from ..parts import Backbone
from .multi_file import MultiFileStore
from .store import FeatureStore

MARGIN = 1.3  # a picture farther than this times the farthest known picture is unlike all of them
FEWEST = 20  # pictures of a store that show a range
SAMPLED = 1000  # images that statistics are computed from


def measure(store: FeatureStore | MultiFileStore, limit: int | None) -> tuple[Tensor, Tensor]:
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


@dataclass(frozen=True)
class FeatureRange:
    """Where the pictures of a store are in the space of features, to recognise pictures unlike all of them. A picture
    is the mean of its regions.

    mean, deviation  of every dimension, (D,), over half of the pictures
    farthest         the largest distance of a picture of the other half
    """

    mean: np.ndarray
    deviation: np.ndarray
    farthest: float

    @classmethod
    def of(cls, store: FeatureStore | MultiFileStore, limit: int | None) -> FeatureRange | None:
        """The range of evenly spaced pictures; None if there are too few."""
        pictures = [store.read(key, limit).features for key in sample(list(store)) if store.count(key)]
        if len(pictures) < FEWEST:
            return None
        means = np.stack([features.mean(0, dtype=np.float64) for features in pictures])
        deviation = means[::2].std(0)
        floor = 0.1 * max(float(deviation.mean()), 1e-6)  # a dimension that hardly varies tells little
        known = cls(means[::2].mean(0), np.maximum(deviation, floor), 0.0)
        return replace(known, farthest=max(map(known.distance, means[1::2])))

    def has(self, features: np.ndarray) -> bool:
        """Whether a picture is among the known ones, or hardly farther."""
        return self.distance(features) <= MARGIN * self.farthest

    def distance(self, features: np.ndarray) -> float:
        """The root mean square, over the dimensions, of the distance from the mean in deviations. `features`: (D,), or
        (R, D) of a picture's regions."""
        mean = features.reshape(-1, features.shape[-1]).mean(0, dtype=np.float64)
        return float(np.sqrt(np.square((mean - self.mean) / self.deviation).mean()))


@torch.no_grad()
def word_scale(backbone: Backbone) -> float:
    """Standard deviation of word embeddings, estimated from one sentence of common words."""
    ids = backbone.encode_text("what is the man in the red shirt doing with the dog on the beach") or [backbone.mask_id]
    device = next(backbone.parameters()).device
    return float(backbone.embed(torch.tensor([ids], device=device)).std())
