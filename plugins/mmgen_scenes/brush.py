"""A brush for one thing: flat shapes in unit coordinates on a transparent sheet, outlined, shaded and cut out.

Everything is painted several times too large and scaled down, which is what smooths its edges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from PIL import Image, ImageChops, ImageDraw, ImageFilter

Color = tuple[int, int, int]
Point = tuple[float, float]

PAINT: dict[str, tuple[Color, Color]] = {  # in the light, and in the shade: a shade leans to a neighbouring hue
    "red": ((228, 56, 54), (172, 30, 52)),
    "orange": ((250, 146, 40), (212, 100, 22)),
    "yellow": ((255, 220, 64), (236, 172, 36)),
    "green": ((60, 172, 88), (26, 122, 74)),
    "blue": ((52, 122, 222), (34, 82, 168)),
    "purple": ((150, 86, 196), (104, 54, 150)),
    "white": ((250, 250, 247), (204, 211, 224)),
    "black": ((62, 62, 72), (36, 35, 45)),
    "brown": ((158, 104, 62), (112, 70, 40)),
}
INK, WHITE, CREAM, WOOD, GOLD = (44, 40, 56), (255, 255, 255), (250, 236, 206), (134, 88, 52), (250, 200, 70)
STEEL, GLASS, PINK, LEAF, ROOF = (120, 126, 140), (190, 228, 246), (246, 170, 180), (74, 168, 80), (92, 76, 92)

OVERSIZE = 3  # how many times as large a sprite is painted as it is cached
MARGIN = 0.08  # of the sheet, for the outline
OUTLINE = 0.011  # of the sheet


def mix(a: Color, b: Color, share: float) -> Color:
    """A mix of two colours, with `share` of `b`."""
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


class Brush:
    """Paints on a sheet whose inner square is (0, 0) to (1, 1), y downwards. A painting fills that square; the
    aspect of the kind stretches the painting when it is pasted into a box.

    main           the thing's colour, which most of the thing should have
    light, dark    the same in light and in shade
    trim           a second colour that is visible on the first: white, or grey on white
    """

    def __init__(self, color: str, side: int):
        self.side = side
        self.main, self.dark = PAINT[color]
        self.light = mix(self.main, WHITE, 0.38)
        self.trim = (176, 190, 212) if color == "white" else mix(self.main, WHITE, 0.88)
        self.sheet = Image.new("RGBA", (side, side), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self.sheet)

    def oval(self, fill: Color, x: float, y: float, rx: float, ry: float | None = None) -> None:
        """An ellipse around (x, y)."""
        ry = rx if ry is None else ry
        self._draw.ellipse([*self._to_pixels(x - rx, y - ry), *self._to_pixels(x + rx, y + ry)], fill)

    def box(self, fill: Color, x0: float, y0: float, x1: float, y1: float, round: float = 0.0) -> None:
        """A rectangle, its corners rounded by the radius `round`."""
        self._draw.rounded_rectangle(
            [*self._to_pixels(x0, y0), *self._to_pixels(x1, y1)], self._length_in_pixels(round), fill
        )

    def shape(self, fill: Color, *points: Point) -> None:
        """A polygon."""
        self._draw.polygon([self._to_pixels(*point) for point in points], fill)

    def blob(self, fill: Color, *points: Point) -> None:
        """A closed smooth curve through the points (Catmull-Rom)."""
        n = len(points)
        curve = [
            _spline_point(points[i - 1], points[i], points[(i + 1) % n], points[(i + 2) % n], step / 10)
            for i in range(n)
            for step in range(10)
        ]
        self.shape(fill, *curve)

    def line(self, fill: Color, width: float, *points: Point) -> None:
        """A line with round joints and ends."""
        self._draw.line([self._to_pixels(*point) for point in points], fill, self._length_in_pixels(width), "curve")
        for x, y in points:
            self.oval(fill, x, y, width / 2)

    def curve(self, fill: Color, width: float, *points: Point) -> None:
        """A smooth open line through the points."""
        ends = (points[0], *points, points[-1])
        spans = zip(ends, ends[1:], ends[2:], ends[3:], strict=False)
        path = [_spline_point(a, b, c, d, step / 10) for a, b, c, d in spans for step in range(10)]
        self.line(fill, width, *path, points[-1])

    def slice(self, fill: Color, x: float, y: float, rx: float, ry: float, start: float, end: float) -> None:
        """A slice of an ellipse, in degrees clockwise from three o'clock."""
        self._draw.pieslice([*self._to_pixels(x - rx, y - ry), *self._to_pixels(x + rx, y + ry)], start, end, fill)

    def eye(self, x: float, y: float, r: float = 0.03) -> None:
        """An eye with a white ring, visible also on black."""
        self.oval(WHITE, x, y, r * 1.55)
        self.oval(INK, x + r * 0.3, y, r)
        self.oval(WHITE, x + r * 0.6, y - r * 0.4, r * 0.35)

    def _to_pixels(self, x: float, y: float) -> tuple[float, float]:
        inner = 1 - 2 * MARGIN
        return self._length_in_pixels(MARGIN + x * inner), self._length_in_pixels(MARGIN + y * inner)

    def _length_in_pixels(self, share: float) -> int:
        return round(share * self.side)


def _spline_point(a: Point, b: Point, c: Point, d: Point, t: float) -> Point:
    """The Catmull-Rom spline from b (t = 0) to c (t = 1)."""
    x, y = (
        0.5 * (2 * q + (r - p) * t + (2 * p - 5 * q + 4 * r - s) * t**2 + (3 * q - p - 3 * r + s) * t**3)
        for p, q, r, s in zip(a, b, c, d, strict=True)
    )
    return x, y


@lru_cache(maxsize=512)
def sprite(paint: Callable[[Brush], None], color: str, side: int) -> Image.Image:
    """The painting of `paint` in a colour, cropped to its edges; about `side` pixels large. Cached: change a copy."""
    brush = Brush(color, side * OVERSIZE)
    paint(brush)
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
