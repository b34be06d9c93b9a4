"""Draws the attention of generated words: a row per step, a panel per word, colours over regions and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen import plotting
from mmgen.attention_maps import DisplayUnits, WordAttention

PANEL, GAP, MARGIN, TITLE = 1.45, 0.14, 0.15, 0.2  # inches
LABEL = 1.15  # width of the column with step names
SIDE = 150  # longer side of a picture in a panel, in pixels
SIZE, LINE = 6.5, 0.125  # font size in points, line height in inches
MARK = "#c2410c"
MANY = 20  # more boxes than this are drawn with thin lines


@dataclass(frozen=True)
class Row:
    """The texts and attention of one step."""

    step: str
    place: int
    reading: WordAttention


def draw(rows: Sequence[Row], image: Any, path: Path) -> None:
    """Write `path`.svg and `path`.png. `image`: a PIL image, or None if the data set has no pictures."""
    if image is not None:
        image.thumbnail((SIDE, SIDE))
    image_height = PANEL * (image.height / image.width if image is not None else 1)
    sizes = [_height_of_row(row, image_height) for row in rows]
    columns = max(1, *(len(row.reading.words) for row in rows))
    width, height = 2 * MARGIN + LABEL + columns * (PANEL + GAP), 2 * MARGIN + sum(sizes)
    with plotting.figure(width, height, salt=path.name, layout="none") as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        top = MARGIN
        for row, size in zip(rows, sizes, strict=True):
            axes.text(MARGIN, top, row.step, va="top", color=plotting.colour(row.place), weight="bold")
            for column in range(len(row.reading.words)):
                left = MARGIN + LABEL + column * (PANEL + GAP)
                _draw_panel(axes, row.reading, column, image, left, top, image_height)
            top += size
        axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
        plotting.save(figure, path)


def _height_of_row(row: Row, image_height: float) -> float:
    """Height of a step's row in inches."""
    all_units = row.reading.units.values()
    lines = sum(len(units.names) for units in all_units if not units.boxes)
    return TITLE + (image_height + 0.05) * any(units.boxes for units in all_units) + lines * LINE + 0.3


def _draw_panel(
    axes: Any, reading: WordAttention, word: int, image: Any, left: float, top: float, image_height: float
) -> None:
    """Draw a generated word, its attention to the inputs, and the share of attention that the panel shows, from the
    upper left corner."""
    *weights, _, _ = reading.weights[""][word].tolist()
    strongest = max([*weights, 0.005])  # attention below half a percent stays faint
    axes.text(left, top, reading.words[word].strip(), va="top", parse_math=False)
    share = f"{100 * sum(weights):.0f} %"
    axes.text(left + PANEL, top + 0.02, share, va="top", ha="right", fontsize=SIZE, alpha=0.7)
    top += TITLE
    shares = iter([weight / strongest for weight in weights])
    strengths = [(units, [next(shares) for _ in units.names]) for units in reading.units.values()]
    for units, own in sorted(strengths, key=lambda pair: not pair[0].boxes):  # pictures first
        if units.boxes:
            _draw_regions(axes, units, own, image, left, top, image_height)
            top += image_height + 0.05
        else:
            _draw_words(axes, units, own, left, top)
            top += len(own) * LINE


def _draw_regions(
    axes: Any, units: DisplayUnits, strengths: Sequence[float], image: Any, left: float, top: float, height: float
) -> None:
    """Draw the picture with its boxes."""
    from matplotlib.patches import Rectangle

    if image is not None:
        axes.imshow(image, extent=(left, left + PANEL, top + height, top), aspect="auto", interpolation="bilinear")
    else:
        axes.add_patch(Rectangle((left, top), PANEL, height, facecolor="#eeeeee"))
    line_width = 0.6 if len(units.boxes) > MANY else 1.4
    for (x0, y0, x1, y1), strength in zip(units.boxes, strengths, strict=True):
        if strength >= 0.03:
            face, edge = (MARK, 0.28 * strength * (1 - 0.8 * (x1 - x0) * (y1 - y0))), (MARK, strength)
            corner, size = (left + x0 * PANEL, top + y0 * height), ((x1 - x0) * PANEL, (y1 - y0) * height)
            axes.add_patch(Rectangle(corner, *size, facecolor=face, edgecolor=edge, linewidth=line_width))


def _draw_words(axes: Any, units: DisplayUnits, strengths: Sequence[float], left: float, top: float) -> None:
    """Draw the words below each other, with backgrounds of their strength."""
    from matplotlib.patches import Rectangle

    for line, (name, strength) in enumerate(zip(units.names, strengths, strict=True)):
        corner, face = (left, top + line * LINE), (MARK, 0.6 * strength)
        axes.add_patch(Rectangle(corner, PANEL, LINE, facecolor=face, linewidth=0))
        axes.text(left + 0.03, top + (line + 0.78) * LINE, name.strip(), fontsize=SIZE, parse_math=False)
