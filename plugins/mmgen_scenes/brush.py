"""Paints one thing: the rows of `sprites.txt` on a transparent sheet, outlined, shaded and cut out.

Everything is painted several times too large and scaled down, which is what smooths its edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops, ImageColor, ImageDraw, ImageFilter

Color = tuple[int, ...]  # red, green, blue
Point = tuple[float, ...]  # x, y
Row = tuple[Any, ...]  # a method of `Brush`, the name of a colour, and the rest of the method's arguments

INK, WHITE, STRAW = (44, 40, 56), (255, 255, 255), (250, 222, 150)

OVERSIZE = 3  # how many times as large a sprite is painted as it is cached
MARGIN = 0.08  # of the sheet, for the outline
OUTLINE = 0.011  # of the sheet
SPLINE_STEPS = 10  # straight pieces between two points of a smooth line


def mix(a: Color, b: Color, share: float) -> Color:
    """A mix of two colours, with `share` of `b`."""
    return tuple(round(x + (y - x) * share) for x, y in zip(a, b, strict=True))


@cache
def read_sprites() -> tuple[dict[str, Color], dict[str, list[Row]]]:
    """The colours that `sprites.txt` names, and the rows of every kind of thing."""
    palette: dict[str, Color] = {"ink": INK, "white": WHITE}
    sprites: dict[str, list[Row]] = {}
    for line in Path(__file__).with_name("sprites.txt").read_text(encoding="utf-8").splitlines():
        words = line.partition("# ")[0].split()
        if "=" in line:
            palette |= {name: ImageColor.getrgb(value) for name, _, value in (word.partition("=") for word in words)}
        elif len(words) == 1:
            rows = sprites[words[0]] = []
        elif words:
            shape, color, *numbers = words
            rows.append((shape, color, *(_point(word) if "," in word else float(word) for word in numbers)))
    return palette, sprites


def paint(name: str) -> Color:
    """A colour of `sprites.txt`."""
    return read_sprites()[0][name]


def _point(word: str) -> Point:
    return tuple(map(float, word.split(",")))


class Brush:
    """Paints shapes on a sheet whose inner square is (0, 0) to (1, 1), y downwards.

    Colours have names: those of `sprites.txt`; `main`, the thing's colour, which most of the thing should have;
    `light`, `shine` and `dark`, the same in light and in shade; `trim`, which is visible on `main`; `hair`, for a mane.
    """

    def __init__(self, color: str, side: int):
        main, dark = paint(f"main.{color}"), paint(f"dark.{color}")
        self.colors: dict[str, Color] = {
            **read_sprites()[0],
            "main": main,
            "dark": dark,
            "light": mix(main, WHITE, 0.38),
            "shine": mix(main, WHITE, 0.65),
            "trim": (176, 190, 212) if color == "white" else mix(main, WHITE, 0.88),
            "hair": (110, 84, 70) if color == "white" else mix(main, STRAW, 0.85),
        }
        self.side = side
        self.sheet = Image.new("RGBA", (side, side), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self.sheet)

    def oval(self, color: str, center: Point, rx: float, ry: float = 0.0) -> None:
        """An ellipse; a circle without `ry`."""
        self._draw.ellipse(self._frame(center, rx, ry or rx), self.colors[color])

    def slice(self, color: str, center: Point, rx: float, ry: float, start: float, end: float) -> None:
        """A slice of an ellipse, in degrees clockwise from three o'clock."""
        self._draw.pieslice(self._frame(center, rx, ry), start, end, self.colors[color])

    def box(self, color: str, corner: Point, opposite: Point, radius: float = 0.0) -> None:
        """A rectangle, its corners rounded."""
        frame = [*self._pixel(corner), *self._pixel(opposite)]
        self._draw.rounded_rectangle(frame, self._pixels(radius), self.colors[color])

    def shape(self, color: str, *points: Point) -> None:
        """A polygon."""
        self._draw.polygon([self._pixel(point) for point in points], self.colors[color])

    def blob(self, color: str, *points: Point) -> None:
        """A closed smooth line through the points, filled."""
        self.shape(color, *_smooth([points[-1], *points, *points[:2]]))

    def line(self, color: str, width: float, *points: Point) -> None:
        """A line with round joints and ends."""
        self._draw.line([self._pixel(point) for point in points], self.colors[color], self._pixels(width), "curve")
        for point in points:
            self.oval(color, point, width / 2)

    def curve(self, color: str, width: float, *points: Point) -> None:
        """A smooth open line through the points."""
        self.line(color, width, *_smooth([points[0], *points, points[-1]]), points[-1])

    def eye(self, color: str, center: Point, r: float) -> None:
        """An eye with a white ring, visible also on black, and a glint."""
        x, y = center
        self.oval("white", center, r * 1.55)
        self.oval(color, (x + r * 0.3, y), r)
        self.oval("white", (x + r * 0.6, y - r * 0.4), r * 0.35)

    def _frame(self, center: Point, rx: float, ry: float) -> list[int]:
        x, y = center
        return [*self._pixel((x - rx, y - ry)), *self._pixel((x + rx, y + ry))]

    def _pixel(self, point: Point) -> tuple[int, ...]:
        return tuple(self._pixels(MARGIN + share * (1 - 2 * MARGIN)) for share in point)

    def _pixels(self, share: float) -> int:
        return round(share * self.side)


def _smooth(points: Sequence[Point]) -> list[Point]:
    """A smooth line from the second point to the last but one, which it leaves out (a Catmull-Rom spline)."""
    return [
        tuple(
            0.5 * (2 * q + (r - p) * t + (2 * p - 5 * q + 4 * r - s) * t**2 + (3 * q - p - 3 * r + s) * t**3)
            for p, q, r, s in zip(a, b, c, d, strict=True)
        )
        for a, b, c, d in zip(points, points[1:], points[2:], points[3:], strict=False)
        for t in (step / SPLINE_STEPS for step in range(SPLINE_STEPS))
    ]


@lru_cache(maxsize=512)
def sprite(kind: str, color: str, side: int) -> Image.Image:
    """The painting of a kind in a colour, cropped to its edges; about `side` pixels large. Cached: change a copy."""
    brush = Brush(color, side * OVERSIZE)
    for shape, *arguments in read_sprites()[1][kind]:
        getattr(brush, shape)(*arguments)
    sheet = _draw_outline(_shade_from_above(brush.sheet)).reduce(OVERSIZE)
    return sheet.crop(sheet.getchannel("A").point(lambda a: 255 * (a > 40)).getbbox())


def _shade_from_above(sheet: Image.Image) -> Image.Image:
    """The sheet lit from above: multiplied by a warm grey that darkens downwards."""
    light = Image.linear_gradient("L").resize(sheet.size)
    tint = Image.merge("RGB", [light.point(lambda v, s=s: 255 - v * s // 255) for s in (42, 46, 34)])
    shaded = ImageChops.multiply(sheet.convert("RGB"), tint).convert("RGBA")
    shaded.putalpha(sheet.getchannel("A"))
    return shaded


def _draw_outline(sheet: Image.Image) -> Image.Image:
    """The sheet with a dark outline: its silhouette, grown a little, is pasted behind it."""
    alpha = sheet.getchannel("A")
    grown = alpha.filter(ImageFilter.GaussianBlur(OUTLINE * sheet.width)).point(lambda v: min(255, v * 9))
    behind = Image.new("RGBA", sheet.size, (*INK, 0))
    behind.putalpha(ImageChops.lighter(grown, alpha))
    return Image.alpha_composite(behind, sheet)
