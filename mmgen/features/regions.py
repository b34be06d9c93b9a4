"""The regions of a picture, as readers of stored features return them; and the limit of pictures per example."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import DataError
from ..examples import Example
from .classes import Classes


class Regions(NamedTuple):
    """The regions of a picture."""

    features: np.ndarray  # (R, D) float16 if they are stored as float16, else float32
    boxes: np.ndarray | None = None  # (R, 4) float32
    classes: Classes | None = None
    hidden: np.ndarray | None = (
        None  # (R,) bool: masked regions, whose features the model does not see; None if no region is masked
    )


def check_picture_count(example: Example, field: str, most: int | None) -> None:
    """Raises DataError for an example with more pictures than the encoder has token types; None means no limit."""
    count = len(example.shown(field))
    if most is not None and count > most:
        raise DataError(
            f"example '{example.id}' shows {count} pictures, but the encoder has token types for {most}; show fewer, "
            "or set extra_token_types of the backbone"
        )
