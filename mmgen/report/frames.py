"""Frames: the layout of an example's pictures on its card, one or several side by side, and of boxes on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .pictures import Shot

GAP = 0.02  # of a frame's width, between two pictures

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
    """The boxes to draw on a card, the last on top: the correct box (step None) and the box of every step."""
    boxes: list[tuple[str | None, Box]] = [(None, right)] if right is not None else []
    return [{"step": step, **_sides_of_box(box)} for step, box in [*boxes, *step_boxes.items()]]


def numbered_outline(number: int, box: Box) -> dict[str, Any]:
    """The box of an object, drawn with its number."""
    return {"number": number, **_sides_of_box(box)}


def _sides_of_box(box: Box) -> dict[str, float]:
    x0, y0, x1, y1 = box
    sides = {"x": x0, "y": y0, "width": max(0.0, x1 - x0), "height": max(0.0, y1 - y0)}
    return {name: round(side, 4) for name, side in sides.items()}
