"""Draws the attention of generated words: a row per step, a panel per word, colours over regions and words."""

from __future__ import annotations

import functools
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
        sheet = _Sheet(axes, image, image_height)
        top = MARGIN
        for row, size in zip(rows, sizes, strict=True):
            axes.text(MARGIN, top, row.step, va="top", color=plotting.colour(row.place), weight="bold")
            for column in range(len(row.reading.words)):
                sheet.draw_panel(row.reading, column, MARGIN + LABEL + column * (PANEL + GAP), top)
            top += size
        axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
        plotting.save(figure, path)


def _height_of_row(row: Row, image_height: float) -> float:
    """Height of a step's row in inches."""
    all_units = row.reading.units.values()
    lines = sum(len(_wrap_words(units)) for units in all_units if not units.boxes)
    return TITLE + (image_height + 0.05) * any(units.boxes for units in all_units) + lines * LINE + 0.3


@dataclass
class _Sheet:
    """Draws panels on one matplotlib axes, in inches from the upper left corner."""

    axes: Any
    image: Any
    image_height: float

    def draw_panel(self, reading: WordAttention, word: int, left: float, top: float) -> None:
        """Draw a generated word, its attention to the inputs, and the share of attention that the panel shows."""
        weights = reading.weights[""][word].tolist()
        strongest = max([*weights[:-2], 0.005])  # attention below half a percent stays faint
        self.axes.text(left, top, reading.words[word].strip(), va="top", parse_math=False)
        self.axes.text(
            left + PANEL, top + 0.02, f"{100 * sum(weights[:-2]):.0f} %", va="top", ha="right", fontsize=SIZE, alpha=0.7
        )
        top += TITLE
        for units, shares in sorted(_weights_by_input(reading, weights), key=lambda pair: not pair[0].boxes):
            draw_units = self.draw_regions if units.boxes else self.draw_words
            top = draw_units(units, [share / strongest for share in shares], left, top)

    def draw_regions(self, units: DisplayUnits, strengths: Sequence[float], left: float, top: float) -> float:
        """Draw the picture with its boxes. Returns its lower edge."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Rectangle

        if self.image is not None:
            extent = (left, left + PANEL, top + self.image_height, top)
            self.axes.imshow(self.image, extent=extent, aspect="auto", interpolation="bilinear")
        else:
            self.axes.add_patch(Rectangle((left, top), PANEL, self.image_height, facecolor="#eeeeee"))
        line_width = 0.6 if len(units.boxes) > MANY else 1.4
        for (x0, y0, x1, y1), strength in zip(units.boxes, strengths, strict=True):
            if strength >= 0.03:
                face = to_rgba(MARK, 0.28 * strength * (1 - 0.8 * (x1 - x0) * (y1 - y0)))
                look: dict[str, Any] = {
                    "facecolor": face,
                    "edgecolor": to_rgba(MARK, strength),
                    "linewidth": line_width,
                }
                corner = (left + x0 * PANEL, top + y0 * self.image_height)
                self.axes.add_patch(Rectangle(corner, (x1 - x0) * PANEL, (y1 - y0) * self.image_height, **look))
        return top + self.image_height + 0.05

    def draw_words(self, units: DisplayUnits, strengths: Sequence[float], left: float, top: float) -> float:
        """Draw the words with backgrounds of their strength. Returns their lower edge."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Rectangle

        for line in _wrap_words(units):
            for unit, x, word_width in line:
                look = to_rgba(MARK, 0.6 * strengths[unit])
                self.axes.add_patch(
                    Rectangle(
                        (left + x - 0.01, top + 0.01), word_width + 0.02, LINE - 0.01, facecolor=look, linewidth=0
                    )
                )
                self.axes.text(left + x, top + 0.78 * LINE, units.names[unit].strip(), fontsize=SIZE, parse_math=False)
            top += LINE
        return top


def _weights_by_input(reading: WordAttention, weights: Sequence[float]) -> list[tuple[DisplayUnits, Sequence[float]]]:
    """A word's attention weights, split by input."""
    shares, start = [], 0
    for units in reading.units.values():
        shares.append((units, weights[start : start + len(units.names)]))
        start += len(units.names)
    return shares


def _wrap_words(units: DisplayUnits) -> list[list[tuple[int, float, float]]]:
    """Words in lines as wide as a panel: (unit, left edge, width), in inches."""
    lines: list[list[tuple[int, float, float]]] = [[]]
    end = 0.0
    for unit, label in enumerate(units.names):
        word_width = _text_width(label.strip())
        start = end + (0.04 if label[:1].isspace() and lines[-1] else 0)
        if lines[-1] and start + word_width > PANEL:
            lines.append([])
            start = 0.0
        lines[-1].append((unit, start, word_width))
        end = start + word_width
    return lines


@functools.cache
def _text_width(text: str) -> float:
    """Width of a word in inches."""
    from matplotlib.textpath import TextPath

    return TextPath((0, 0), text.replace("$", r"\$"), size=SIZE).get_extents().x1 / 72 if text else 0.0
