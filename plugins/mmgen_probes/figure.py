"""Drawings of attention: a row a step, a panel a written word; the picture's regions and the caption's words in the
colour of attention."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen import plotting
from mmgen.attention_maps import DisplayUnits, WordAttention

PANEL, GAP, MARGIN, TITLE = 1.45, 0.14, 0.15, 0.2  # inches
LABEL = 1.15  # of the column with the steps' names
SIDE = 150  # longer side of a picture in a panel, in pixels
SIZE, LINE = 6.5, 0.125  # of letters in points, of lines in inches
MARK = "#c2410c"
MANY = 20  # more boxes than that are drawn with thin lines


@dataclass(frozen=True)
class Row:
    """What one step wrote and looked at."""

    step: str
    place: int
    reading: WordAttention


def draw(rows: Sequence[Row], image: Any, path: Path) -> None:
    """`path`.svg and `path`.png. `image`: of PIL, or None where the data set has no pictures."""
    if image is not None:
        image.thumbnail((SIDE, SIDE))
    tall = PANEL * (image.height / image.width if image is not None else 1)
    sizes = [_height(row, tall) for row in rows]
    columns = max(1, *(len(row.reading.words) for row in rows))
    width, height = 2 * MARGIN + LABEL + columns * (PANEL + GAP), 2 * MARGIN + sum(sizes)
    with plotting.figure(width, height, salt=path.name, layout="none") as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        sheet = _Sheet(axes, image, tall)
        top = MARGIN
        for row, size in zip(rows, sizes, strict=True):
            axes.text(MARGIN, top, row.step, va="top", color=plotting.colour(row.place), weight="bold")
            for column in range(len(row.reading.words)):
                sheet.panel(row.reading, column, MARGIN + LABEL + column * (PANEL + GAP), top)
            top += size
        axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
        plotting.save(figure, path)


def _height(row: Row, tall: float) -> float:
    """Inches that a step's row takes."""
    told = row.reading.units.values()
    lines = sum(len(_lines(units)) for units in told if not units.boxes)
    return TITLE + (tall + 0.05) * any(units.boxes for units in told) + lines * LINE + 0.3


@dataclass
class _Sheet:
    """Panels on one pair of axes, in inches from the upper left corner."""

    axes: Any
    image: Any
    tall: float

    def panel(self, reading: WordAttention, word: int, left: float, top: float) -> None:
        """A written word, how much of its attention is shown here, and where that goes."""
        weights = reading.weights[""][word].tolist()
        most = max([*weights[:-2], 0.005])  # what is under half a percent stays faint
        self.axes.text(left, top, reading.words[word].strip(), va="top", parse_math=False)
        self.axes.text(
            left + PANEL, top + 0.02, f"{100 * sum(weights[:-2]):.0f} %", va="top", ha="right", fontsize=SIZE, alpha=0.7
        )
        top += TITLE
        for units, shares in sorted(_shares(reading, weights), key=lambda pair: not pair[0].boxes):
            show = self.regions if units.boxes else self.words
            top = show(units, [share / most for share in shares], left, top)

    def regions(self, units: DisplayUnits, strengths: Sequence[float], left: float, top: float) -> float:
        """The picture with its boxes; where it ends."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Rectangle

        if self.image is not None:
            place = (left, left + PANEL, top + self.tall, top)
            self.axes.imshow(self.image, extent=place, aspect="auto", interpolation="bilinear")
        else:
            self.axes.add_patch(Rectangle((left, top), PANEL, self.tall, facecolor="#eeeeee"))
        thick = 0.6 if len(units.boxes) > MANY else 1.4
        for (x0, y0, x1, y1), strength in zip(units.boxes, strengths, strict=True):
            if strength >= 0.03:
                face = to_rgba(MARK, 0.28 * strength * (1 - 0.8 * (x1 - x0) * (y1 - y0)))
                look: dict[str, Any] = {"facecolor": face, "edgecolor": to_rgba(MARK, strength), "linewidth": thick}
                corner = (left + x0 * PANEL, top + y0 * self.tall)
                self.axes.add_patch(Rectangle(corner, (x1 - x0) * PANEL, (y1 - y0) * self.tall, **look))
        return top + self.tall + 0.05

    def words(self, units: DisplayUnits, strengths: Sequence[float], left: float, top: float) -> float:
        """The words on a ground of their strength; where they end."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Rectangle

        for line in _lines(units):
            for unit, x, wide in line:
                look = to_rgba(MARK, 0.6 * strengths[unit])
                self.axes.add_patch(
                    Rectangle((left + x - 0.01, top + 0.01), wide + 0.02, LINE - 0.01, facecolor=look, linewidth=0)
                )
                self.axes.text(left + x, top + 0.78 * LINE, units.labels[unit].strip(), fontsize=SIZE, parse_math=False)
            top += LINE
        return top


def _shares(reading: WordAttention, weights: Sequence[float]) -> list[tuple[DisplayUnits, Sequence[float]]]:
    """A word's weights, input by input."""
    told, place = [], 0
    for units in reading.units.values():
        told.append((units, weights[place : place + len(units.labels)]))
        place += len(units.labels)
    return told


def _lines(units: DisplayUnits) -> list[list[tuple[int, float, float]]]:
    """Words set in lines as wide as a panel: (unit, from where, how wide), in inches."""
    lines: list[list[tuple[int, float, float]]] = [[]]
    end = 0.0
    for unit, label in enumerate(units.labels):
        wide = _wide(label.strip())
        start = end + (0.04 if label[:1].isspace() and lines[-1] else 0)
        if lines[-1] and start + wide > PANEL:
            lines.append([])
            start = 0.0
        lines[-1].append((unit, start, wide))
        end = start + wide
    return lines


@functools.cache
def _wide(text: str) -> float:
    """Inches that a word takes."""
    from matplotlib.textpath import TextPath

    return TextPath((0, 0), text.replace("$", r"\$"), size=SIZE).get_extents().x1 / 72 if text else 0.0
