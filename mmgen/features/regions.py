"""The regions of a picture, as readers of stored features return them; which of them are masked (VL-BERT, 3.3)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError
from ..tensors import Hiding
from .classes import Classes


class Regions(NamedTuple):
    """The regions of a picture. `hidden`: (R,) bool, masked regions, whose features the model does not see."""

    features: np.ndarray  # (R, D) float16 if they are stored as float16, else float32
    boxes: np.ndarray | None = None  # (R, 4) float32
    classes: Classes | None = None
    hidden: np.ndarray | None = None  # None if no region is masked


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
        raise DataError("the class names of the regions differ from those that are predicted")
    predicted, hidden = np.zeros((2, count), bool)
    labels = np.full((count, len(names)), -100, np.float32)
    if classes is None:
        return hidden, torch.from_numpy(labels)
    for place, known in enumerate(classes.known):
        if draw.random() < hiding.rate and known:
            predicted[place], hidden[place] = True, draw.random() < hiding.replace[0]
    labels[predicted] = classes[predicted].distributions()
    return hidden, torch.from_numpy(labels)
