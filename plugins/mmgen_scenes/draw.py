"""Draws a scene: sky, hills, water and ground, then the things, back to front. A function of the scene and the size."""

from __future__ import annotations

import math
from functools import lru_cache
from random import Random

from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

from .brush import WHITE, Color, mix, paint, sprite
from .world import WATER_HEIGHT, Scene, Thing

OVERSIZE = 2  # the background is drawn this many times as large, and reduced
LARGEST = 0.38  # greatest size of a thing, as a share of the picture's side
MOST_PIXELS = 400  # greatest side of a cached sprite, which otherwise is twice the largest thing's


def draw(scene: Scene, side: int) -> Image.Image:
    """The picture, RGB, `side` pixels square."""
    rng = Random(scene.look)
    picture = _draw_background(scene, rng, side)
    for thing in sorted(scene.things, key=lambda thing: thing.box[3]):
        _paste_thing(picture, thing, rng, side)
    return picture


def _draw_background(scene: Scene, rng: Random, side: int) -> Image.Image:
    big = side * OVERSIZE
    sky, ground = _colors("sky" + rng.choice("1234")), _colors(scene.ground)
    horizon = scene.horizon * big
    shore = (scene.horizon + WATER_HEIGHT * scene.water) * big
    picture = _draw_gradient(sky, big, big)
    pen = ImageDraw.Draw(picture)
    _draw_clouds(pen, rng, big, horizon, mix(sky[1], WHITE, 0.55))
    for height, tone in ((0.11, 0.62), (0.06, 0.3)):
        _draw_ridge(pen, rng, big, horizon, height * big, mix(paint(f"hills.{scene.ground}"), sky[1], tone))
    if scene.water:
        picture.paste(_draw_gradient(_colors("water"), big, round(shore - horizon) + big // 20), (0, round(horizon)))
        _draw_waves(pen, rng, big, horizon, shore)
    edge = Image.new("L", (big, big))
    ImageDraw.Draw(edge).polygon([*_wavy_line(rng, big, shore, 0.008 * big), (big, big), (0, big)], 255)
    earth = Image.new("RGB", (big, big))
    earth.paste(_draw_gradient(ground, big, big - round(shore) + big // 20), (0, round(shore) - big // 20))
    _draw_ground_details(ImageDraw.Draw(earth), rng, big, shore, scene.ground)
    picture.paste(earth, (0, 0), edge)
    return picture.reduce(OVERSIZE)


def _colors(name: str) -> tuple[Color, Color]:
    """The colours of a part of the background, far and near."""
    return paint(f"far.{name}"), paint(f"near.{name}")


def _draw_gradient(colors: tuple[Color, Color], width: int, height: int) -> Image.Image:
    """A gradient from the first colour, at the top, to the second."""
    return _column_of_colors(colors, height).resize((width, height), Image.Resampling.NEAREST)


@lru_cache(maxsize=2048)  # there are few heights and colours, and many scenes
def _column_of_colors(colors: tuple[Color, Color], height: int) -> Image.Image:
    strip = Image.new("RGB", (1, height))
    strip.putdata([mix(*colors, y / max(height - 1, 1)) for y in range(height)])
    return strip


def _wavy_line(rng: Random, side: int, y: float, height: float) -> list[tuple[float, float]]:
    """A gently wavy line across the picture."""
    waves = [(rng.uniform(0.6, 2.2), rng.uniform(0, 2 * math.pi)) for _ in range(3)]
    return [
        (x, y + height * sum(math.sin(2 * math.pi * n * x / side + phase) for n, phase in waves) / len(waves))
        for x in range(0, side + 9, 8)
    ]


def _draw_ridge(pen: ImageDraw.ImageDraw, rng: Random, side: int, y: float, height: float, fill: Color) -> None:
    pen.polygon([*_wavy_line(rng, side, y - height * 0.55, height), (side, y + 2), (0, y + 2)], fill)


def _draw_clouds(pen: ImageDraw.ImageDraw, rng: Random, side: int, horizon: float, fill: Color) -> None:
    """Faint flat clouds: decoration that no text mentions."""
    for _ in range(rng.randint(1, 3)):
        x, y, width = rng.uniform(0, side), rng.uniform(0.1, 0.6) * horizon, rng.uniform(0.12, 0.22) * side
        for dx, dy, w, h in ((0, 0, 1, 0.16), (-0.35, -0.12, 0.5, 0.16), (0.3, -0.1, 0.45, 0.13)):
            cx, cy = x + dx * width, y + dy * width
            pen.ellipse([cx - w * width / 2, cy - h * width, cx + w * width / 2, cy + h * width], fill)


def _draw_waves(pen: ImageDraw.ImageDraw, rng: Random, side: int, top: float, bottom: float) -> None:
    for _ in range(14):
        x, y, width = rng.uniform(0, side), rng.uniform(top + 0.01 * side, bottom), rng.uniform(0.03, 0.08) * side
        pen.line([x, y, x + width, y], mix(paint("far.water"), WHITE, 0.45), max(1, side // 190))


def _draw_ground_details(pen: ImageDraw.ImageDraw, rng: Random, side: int, top: float, ground: str) -> None:
    """Blades of grass, grains of sand or glints of snow; larger in the foreground."""
    tone = mix(paint(f"near.{ground}"), (60, 70, 60) if ground != "snow" else (120, 150, 190), 0.22)
    for _ in range(60):
        x, y = rng.uniform(0, side), rng.uniform(top, side)
        size = side * (0.004 + 0.012 * (y - top) / (side - top))
        if ground == "grass":
            for lean in (-0.5, 0.0, 0.5):
                pen.line([x, y, x + lean * size, y - size], tone, max(1, side // 250))
        else:
            pen.ellipse([x - size / 2, y - size / 5, x + size / 2, y + size / 5], tone)


def _paste_thing(picture: Image.Image, thing: Thing, rng: Random, side: int) -> None:
    """Pastes a thing into its box, with a shadow or a ripple."""
    x0, y0, x1, y1 = (round(v * side) for v in thing.box)
    if thing.place == "water":
        _draw_shadow(picture, x0, x1, y1, mix(paint("far.water"), WHITE, 0.7), 190)
    elif thing.place != "sky":
        _draw_shadow(picture, x0, x1, y1, (50, 56, 70), 80)
    image = sprite(thing.kind, thing.color, min(round(2 * LARGEST * side), MOST_PIXELS))
    image = image.resize((x1 - x0, y1 - y0), Image.Resampling.LANCZOS, reducing_gap=2.0)
    if thing.facing == "left":
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    alpha = image.getchannel("A")
    picture.paste(ImageEnhance.Brightness(image.convert("RGB")).enhance(rng.uniform(0.95, 1.05)), (x0, y0), alpha)


def _draw_shadow(picture: Image.Image, x0: int, x1: int, y: int, fill: Color, strength: int) -> None:
    """A soft flat ellipse under a thing whose lower edge is at y."""
    width, height, soft = x1 - x0, max(4, (x1 - x0) // 6), max(2, picture.width // 80)
    mask = Image.new("L", (width + 4 * soft, height + 4 * soft))
    ImageDraw.Draw(mask).ellipse([2 * soft, 2 * soft, width + 2 * soft, height + 2 * soft], strength)
    picture.paste(fill, (x0 - 2 * soft, y - height // 2 - 2 * soft), mask.filter(ImageFilter.GaussianBlur(soft)))
