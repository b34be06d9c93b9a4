"""Two pictures in two rows: makes a row per picture, and a head over the pooled states of both."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.examples import All, Example


def row_per_picture(example: Example, field: str) -> list[Example]:
    """Two rows, the first with the first of the example's two pictures and the second with the other. `field`: the
    input that holds both. Raises DataError for another number of pictures."""
    pictures = example.inputs.get(field)
    if not isinstance(pictures, All) or len(pictures.values) != 2:
        raise DataError(
            f"example '{example.id}': arrangement = \"rows\" needs two pictures in '{field}'; give two, or set "
            'arrangement = "row"'
        )
    return [replace(example, inputs={**example.inputs, field: picture}) for picture in pictures.values]


def pair_head(width: int, classes: int) -> nn.Sequential:
    """(B, 2H) -> (B, classes), with a hidden layer as in LXMERT's and MMF's heads for NLVR2."""
    wide = 2 * width
    return nn.Sequential(nn.Linear(wide, wide), nn.GELU(), nn.LayerNorm(wide), nn.Linear(wide, classes))


def joined(pooled: Tensor) -> Tensor:
    """(2B, H) -> (B, 2H): both states of an example side by side."""
    return pooled.reshape(len(pooled) // 2, -1)
