"""Drawing: tight boxes, colours that show, and kinds that differ when they are small."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from mmgen_scenes import draw
from mmgen_scenes.brush import PAINT, sprite
from mmgen_scenes.world import COLORS, KINDS
from PIL import Image, ImageChops


@pytest.mark.slow
@pytest.mark.parametrize("side", [64, 192, 400])
def test_boxes_are_tight(data, monkeypatch, side):
    monkeypatch.setattr(draw, "_draw_shadow", lambda *args: None)  # a shadow is not part of a thing
    for scene, _ in data.scenes("test")[:12]:
        nothing = draw.draw(replace(scene, things=()), side)
        for thing in scene.things:
            alone = draw.draw(replace(scene, things=(thing,)), side)
            changed = ImageChops.difference(alone, nothing).convert("L").point(lambda v: 255 * (v > 8)).getbbox()
            np.testing.assert_allclose(changed, np.array(thing.box) * side, atol=2.01)


@pytest.mark.slow
def test_every_kind_shows_its_color():
    paints = np.array([PAINT[color] for color in COLORS], dtype=float)  # (colours, light and shade, 3)
    for kind in KINDS.values():
        for color in kind.colors:
            pixels = np.asarray(sprite(draw.PAINTERS[kind.name], color, 60)).reshape(-1, 4).astype(float)
            solid = pixels[pixels[:, 3] > 250][:, None, None, :3]
            nearest = ((solid - paints) ** 2).sum(-1).min(-1).argmin(-1)
            shares = np.bincount(nearest, minlength=len(COLORS)) / len(nearest)
            assert shares[COLORS.index(color)] > 0.3, (kind.name, color, shares)


def test_kinds_differ_when_they_are_small():
    """At 40 pixels, without colour: the silhouettes or the shading differ."""

    def grey_image(kind) -> np.ndarray:
        image = sprite(draw.PAINTERS[kind.name], kind.colors[0], 120).resize((40, 40))
        flat = Image.new("RGBA", image.size, (190, 215, 190, 255))
        return np.asarray(Image.alpha_composite(flat, image).convert("L"), dtype=float)

    images = {name: grey_image(kind) for name, kind in KINDS.items()}
    for a, b in combinations(images, 2):
        assert abs(images[a] - images[b]).mean() > 18, (a, b)
