"""Hiding regions: which of a picture's are to be predicted, and which of those are hidden (VL-BERT, section 3.3)."""

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
    """Which of a picture's `count` regions are hidden, (R,) bool, and what is to be predicted: (R, C) distributions
    over the classes `names`, -100 at regions that are not. A region of which no class is known is neither.

    A share `hiding.rate` of the regions is predicted, and of those the share `hiding.replace[0]` is hidden. The others
    are shown as they are, since no region stands for another. Raises DataError where classes have other names."""
    if not names:
        raise DataError("hides regions to predict their classes, and the features tell no classes")
    if classes is not None and classes.names != tuple(names):
        raise DataError(f"regions are of {len(classes.names)} classes, not of the {len(names)} that are predicted")
    asked, hidden = np.zeros((2, count), bool)
    labels = np.full((count, len(names)), -100, np.float32)
    if classes is None:
        return hidden, torch.from_numpy(labels)
    for place, known in enumerate(classes.known):
        if draw.random() < hiding.rate and known:
            asked[place], hidden[place] = True, draw.random() < hiding.replace[0]
    labels[asked] = classes.of(asked).distributions()
    return hidden, torch.from_numpy(labels)
