"""Masked regions: draws which regions of a picture are predicted, and which of those are hidden (VL-BERT, 3.3)."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError
from ..tensors import Hiding
from .classes import Classes


def hide_regions(
    classes: Classes | None, count: int, names: Sequence[str] | None, draw: random.Random, hiding: Hiding
) -> tuple[np.ndarray, Tensor]:
    """Draw which of a picture's `count` regions are masked, (R,) bool, and the labels: (R, C) distributions over the
    classes `names`, -100 at regions that are not predicted. A region without a known class is neither masked nor
    predicted.

    A share `hiding.rate` of the regions is predicted, and a share `hiding.replace[0]` of those is masked. The others
    keep their features, since regions are never replaced by other regions. Raises DataError for other class names."""
    if not names:
        raise DataError("cannot mask regions to predict their classes, because the features have no classes")
    if classes is not None and classes.names != tuple(names):
        raise DataError(
            f"the {len(classes.names)} class names of the regions differ from the {len(names)} that are predicted"
        )
    predicted, hidden = np.zeros((2, count), bool)
    labels = np.full((count, len(names)), -100, np.float32)
    if classes is None:
        return hidden, torch.from_numpy(labels)
    for place, known in enumerate(classes.known):
        if draw.random() < hiding.rate and known:
            predicted[place], hidden[place] = True, draw.random() < hiding.replace[0]
    labels[predicted] = classes.of(predicted).distributions()
    return hidden, torch.from_numpy(labels)
