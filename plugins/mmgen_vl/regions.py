"""Which regions there are to choose from, and which overlap a box well enough to be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mmgen.errors import DataError
from mmgen.objectives import Rows

from .boxes import RIGHT, iou


def plain(boxes: Tensor) -> list[list[float]]:
    """Boxes (N, 4) as numbers, all digits that 32 bits tell and no more: fewer would change which overlap by half."""
    return [[float(str(number)) for number in box] for box in boxes.float().cpu().numpy()]


def regions_of(rows: Rows, image: str) -> Tensor:
    """Boxes (B, N, 4) of the regions that there are to choose from. Raises DataError without."""
    collated = rows.inputs[image]
    if "boxes" not in collated:
        raise DataError(f"the regions of '{image}' have no boxes to choose from; give it features with boxes")
    return collated["boxes"]


def choosable(collated: Mapping[str, Tensor], include_whole: bool = False) -> Tensor:
    """(B, N) bool: which slots of an input of regions may be chosen. A whole picture that an embedder puts in front of
    its regions is none of them, but where `whole` says so, and where there is nothing else."""
    mask = collated["mask"]
    if include_whole or "whole" not in collated:
        return mask
    regions = mask & ~collated["whole"]
    return torch.where(regions.any(1, keepdim=True), regions, mask)


def right(boxes: Tensor, box: Any, example: str) -> Tensor:
    """(N,) bool: which of N boxes (N, 4) are right where `box` is: an IoU of .5 counts, while learning and in every
    metric. Raises DataError for a box that is none."""
    numbers = isinstance(box, Sequence) and len(box) == 4 and all(isinstance(number, int | float) for number in box)
    if not numbers or not (box[0] < box[2] and box[1] < box[3]):
        raise DataError(
            f"example '{example}': the box {str(box)[:60]} is not [x0, y0, x1, y1] with x0 < x1 and y0 < y1"
        )
    return torch.from_numpy(iou(boxes.double().cpu().numpy(), box)[:, 0] >= RIGHT)
