"""Frames: the layout of an example's pictures on its card, one or several side by side, and of boxes on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .pictures import Shot

GAP = 0.02  # of a frame's width, between two pictures
DASH = 11  # pixels per dash where several boxes share one line
NEAR = 0.03  # of a picture's size; two lines whose four sides are nearer than this hide each other

Box = Sequence[float]  # x0, y0, x1, y1, relative to the picture's size


@dataclass(frozen=True)
class Frame:
    """Pictures of equal height, side by side."""

    shots: tuple[Shot, ...]

    @property
    def shares(self) -> list[float]:
        """The width of each picture, relative to the frame's width."""
        ratios = [width / height for _, width, height in self.shots]
        return [ratio / sum(ratios) * (1 - GAP * (len(ratios) - 1)) for ratio in ratios]

    @property
    def ratio(self) -> float:
        """The frame's width over its height."""
        ratios = [width / height for _, width, height in self.shots]
        return sum(ratios) / (1 - GAP * (len(ratios) - 1))

    def place(self, box: Box, picture: int = 0) -> list[float]:
        """Convert a box of one of the pictures to coordinates relative to the frame's size."""
        shares = self.shares
        left, x0, y0, x1, y1 = sum(shares[:picture]) + GAP * picture, *box
        corners = (left + x0 * shares[picture], y0, left + x1 * shares[picture], y1)
        return [round(corner, 3) for corner in corners]


def outlines(step_boxes: Mapping[str, Box], right: Box | None) -> list[dict[str, Any]]:
    """The boxes to draw on a card, the last on top: the correct box (step None) and the box of every step. Boxes whose
    lines hide each other alternate as dashes along the line."""
    boxes: list[tuple[str | None, Box]] = [(None, right)] if right is not None else []
    boxes += step_boxes.items()
    shapes = []
    for step, box in boxes:
        overlapping_steps = [name for name, other_box in boxes if _hide_each_other(other_box, box)]
        shapes.append(
            {
                "step": step,
                **_sides_of_box(box),
                "dashes": f"{DASH} {DASH * (len(overlapping_steps) - 1)}" if len(overlapping_steps) > 1 else "",
                "offset": -DASH * overlapping_steps.index(step),
            }
        )
    return shapes


def _hide_each_other(first: Box, second: Box) -> bool:
    return all(abs(side - other_side) < NEAR for side, other_side in zip(first, second, strict=True))


def numbered_outline(number: int, box: Box) -> dict[str, Any]:
    """The box of an object, drawn with its number."""
    return {"number": number, **_sides_of_box(box)}


def _sides_of_box(box: Box) -> dict[str, float]:
    x0, y0, x1, y1 = box
    sides = {"x": x0, "y": y0, "width": max(0.0, x1 - x0), "height": max(0.0, y1 - y0)}
    return {name: round(side, 4) for name, side in sides.items()}
