"""The regions of a picture, as readers of stored features hand them on; and how many pictures an example may show."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import DataError
from ..tensors import Example
from .classes import Classes


class Regions(NamedTuple):
    """The regions of a picture."""

    features: np.ndarray  # (R, D) float32
    boxes: np.ndarray | None = None  # (R, 4) float32
    classes: Classes | None = None
    hidden: np.ndarray | None = None  # (R,) bool: those that stand without their features, where some do


def refuse_many(example: Example, field: str, most: int | None) -> None:
    """Raises DataError for an example of more pictures than have token types of their own; None is no limit."""
    count = len(example.shown(field))
    if most is not None and count > most:
        raise DataError(
            f"example '{example.id}' shows {count} pictures, and the encoder has token types for {most}; show fewer, "
            "or give the backbone extra_types"
        )
