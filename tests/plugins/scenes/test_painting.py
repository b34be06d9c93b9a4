"""Pictures of drawn scenes: the brush, boxes that are tight, kinds and colours that show, proposals of regions."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from mmgen_scenes import draw
from mmgen_scenes.brush import INK, MARGIN, Brush, mix, paint, sprite
from mmgen_scenes.detector import detector_classes
from mmgen_scenes.tasks import SceneExpressions
from mmgen_scenes.world import COLORS, KINDS
from mmgen_vision.boxes import iou
from PIL import Image, ImageChops


def test_colours_are_mixed():
    assert mix((0, 0, 0), (100, 50, 10), 0.5) == (50, 25, 5) and mix((1, 2, 3), INK, 0.0) == (1, 2, 3)


def test_shapes_are_in_unit_coordinates():
    brush = Brush("red", 100)
    brush.box("ink", (0, 0), (0.5, 1))
    left, right = brush.sheet.getpixel((20, 50)), brush.sheet.getpixel((80, 50))
    assert left == (*INK, 255) and right == (0, 0, 0, 0)
    assert brush.sheet.getpixel((2, 50))[3] == 0  # the margin for the outline
    brush.oval("main", (0.75, 0.5), 0.1)
    assert brush.sheet.getpixel((71, 50)) == (*paint("main.red"), 255)


def test_a_sprite_is_cropped_outlined_and_darker_below():
    bus = sprite("bus", "blue", 60)
    top, bottom = (bus.getpixel((x, y)) for x, y in ((bus.width // 2, 5), (bus.width // 3, bus.height * 3 // 4)))
    assert sum(top[:3]) > sum(bottom[:3]) and top[3] == 255
    assert all(sum(bus.getpixel(edge)[:3]) < sum(INK) + 60 for edge in ((0, 25), (25, 0)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_painting_fills_its_square_and_has_its_colour(kind):
    red, blue = (np.asarray(sprite(kind, color, 96)).astype(int) for color in ("red", "blue"))
    assert max(red.shape[:2]) > 0.9 * (1 - 2 * MARGIN) * 96
    changed = np.abs(red - blue).sum(-1)[red[..., 3] > 250] > 40
    assert changed.mean() > 0.4, f"{changed.mean():.0%} of the thing has its colour"


@pytest.mark.slow
@pytest.mark.parametrize("side", [64, 192, 400])
def test_boxes_are_tight(data, monkeypatch, side):
    monkeypatch.setattr(draw, "_draw_shadow", lambda *args: None)  # a shadow is not part of a thing
    for (scene,), _ in data.scene_sets("test")[:12]:
        nothing = draw.draw(replace(scene, things=()), side)
        for thing in scene.things:
            alone = draw.draw(replace(scene, things=(thing,)), side)
            changed = ImageChops.difference(alone, nothing).convert("L").point(lambda v: 255 * (v > 8)).getbbox()
            np.testing.assert_allclose(changed, np.array(thing.box) * side, atol=2.01)


@pytest.mark.slow
def test_every_kind_shows_its_color():
    paints = np.array(
        [[paint(f"main.{color}"), paint(f"dark.{color}")] for color in COLORS], dtype=float
    )  # (colours, light and shade, 3)
    for kind in KINDS.values():
        for color in kind.colors:
            pixels = np.asarray(sprite(kind.name, color, 60)).reshape(-1, 4).astype(float)
            solid = pixels[pixels[:, 3] > 250][:, None, None, :3]
            nearest = ((solid - paints) ** 2).sum(-1).min(-1).argmin(-1)
            shares = np.bincount(nearest, minlength=len(COLORS)) / len(nearest)
            assert shares[COLORS.index(color)] > 0.3, (kind.name, color, shares)


def test_kinds_differ_when_they_are_small():
    """At 40 pixels, without colour: the silhouettes or the shading differ."""

    def grey_image(kind) -> np.ndarray:
        image = sprite(kind.name, kind.colors[0], 120).resize((40, 40))
        flat = Image.new("RGBA", image.size, (190, 215, 190, 255))
        return np.asarray(Image.alpha_composite(flat, image).convert("L"), dtype=float)

    images = {name: grey_image(kind) for name, kind in KINDS.items()}
    for a, b in combinations(images, 2):
        assert abs(images[a] - images[b]).mean() > 18, (a, b)


@pytest.mark.slow
def test_proposals_are_near_the_target_and_elsewhere():
    """98 things in 100 have a right box; 5 boxes in 100 are right."""
    data = SceneExpressions(train_size=200, val_size=1, test_size=1, proposals=36).build()
    reached, share = [], []
    for scene_set, picture in zip(data.scene_sets("train"), data.pictures(), strict=False):
        assert picture.key == scene_set[0][0].id == scene_set[1][0].inputs["image"]
        assert len(picture.boxes) == len(picture.region_names) == 36
        for box, label in zip(picture.boxes, picture.region_names, strict=True):
            right = [f"{t.color} {t.kind}" for t in scene_set[0][0].things if iou(t.box, box) >= 0.5]
            assert label in right or (label == "background" and not right)
        for example in scene_set[1]:
            right = [iou(example.labels["box"], box) >= 0.5 for box in picture.boxes]
            reached.append(any(right))
            share.append(sum(right) / 36)
    assert 0.95 < sum(reached) / len(reached) < 1
    assert sum(share) / len(share) == pytest.approx(0.05, abs=0.01)


@pytest.mark.slow
def test_detector_classes_are_the_right_kind_and_similar_kinds(data):
    """The right kind has the highest probability; similar kinds have more of the rest than other kinds; the whole
    picture has no distribution. The probabilities are reproducible."""
    shares = Counter()
    for picture, again in zip(data.pictures(), data.pictures(), strict=True):
        classes = picture.classes
        assert classes.names == tuple(KINDS) and not classes.known[-1] and classes.known[:-1].all()
        assert [classes.names[first] for first in classes.ids[:-1, 0]] == [
            label.split()[1] for label in picture.region_names[:-1]
        ]
        assert (classes.probabilities[:-1, 0] > 0.5).all() and (classes.probabilities[:-1].sum(1) <= 1 + 1e-6).all()
        assert np.array_equal(classes.probabilities, again.classes.probabilities)
        for kind, chances in zip(picture.region_names[:-1], classes.distributions(), strict=False):
            if kind.endswith(" dog"):
                shares += Counter(dict(zip(classes.names, chances.tolist(), strict=True)))
    assert shares["cat"] > 3 * shares["car"] and shares["horse"] > 3 * shares["kite"]


def test_a_plural_label_has_its_kind_and_the_background_has_none(data):
    classes = detector_classes(data.scene_sets("train")[0][0][0], ["blue cats", "background"])
    assert classes.names[classes.ids[0, 0]] == "cat" and classes.known.tolist() == [True, False]
