"""Which regions an objective can choose, their boxes, and which of them overlap the right box enough to be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mmgen.errors import DataError
from mmgen.objectives import Rows

from .boxes import RIGHT, box_array, iou


def plain(boxes: Tensor) -> list[list[float]]:
    """Boxes (N, 4) as lists of floats with the shortest digits that identify the 32-bit numbers; fewer digits would
    change which boxes overlap by half."""
    return [[float(str(number)) for number in box] for box in boxes.float().cpu().numpy()]


def regions_of(rows: Rows, image: str) -> Tensor:
    """Boxes (B, N, 4) of the regions of an input. Raises DataError if the regions have no boxes."""
    collated = rows.inputs[image]
    if "boxes" not in collated:
        raise DataError(f"the regions of '{image}' have no boxes; give '{image}' features with boxes")
    return collated["boxes"]


def choosable(collated: Mapping[str, Tensor], include_whole: bool = False) -> Tensor:
    """(B, N) bool: the slots of an input from which an objective can choose: its regions. The slot of the whole
    picture, which some embedders put before the regions, is included with `include_whole`, or without regions."""
    mask = collated["mask"]
    if include_whole or "whole_picture" not in collated:
        return mask
    regions = mask & ~collated["whole_picture"]
    return torch.where(regions.any(1, keepdim=True), regions, mask)


def right(boxes: Tensor, box: Any, example: str) -> Tensor:
    """(N,) bool: which of N boxes (N, 4) match the ground truth `box` with an IoU of at least .5, in training and in
    every metric. Raises DataError for an invalid box."""
    truth = box_array([box], f"example '{example}'")
    if (truth[:, :2] >= truth[:, 2:]).any():
        raise DataError(
            f"example '{example}': the box must be [x0, y0, x1, y1] with x0 < x1 and y0 < y1, not {box!r:.60}"
        )
    return torch.from_numpy(iou(boxes.double().cpu().numpy(), truth)[:, 0] >= RIGHT)
