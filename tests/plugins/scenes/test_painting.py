"""Pictures of drawn scenes: the brush, boxes that are tight, kinds and colours that show, proposals of regions."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from mmgen_scenes import draw
from mmgen_scenes.brush import paint, sprite
from mmgen_scenes.detector import detector_classes
from mmgen_scenes.tasks import SceneExpressions
from mmgen_scenes.world import COLORS, KINDS
from mmgen_vision.boxes import iou
from PIL import ImageChops

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("side", [64, 192, 400])
def test_boxes_are_tight(data, monkeypatch, side):
    monkeypatch.setattr(draw, "_draw_shadow", lambda *args: None)  # a shadow is not part of a thing
    for (scene,), _ in data.scene_sets("test")[:12]:
        nothing = draw.draw(replace(scene, things=()), side)
        for thing in scene.things:
            alone = draw.draw(replace(scene, things=(thing,)), side)
            changed = ImageChops.difference(alone, nothing).convert("L").point(lambda v: 255 * (v > 8)).getbbox()
            np.testing.assert_allclose(changed, np.array(thing.box) * side, atol=2.01)


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


def test_detector_classes_are_the_right_kind_and_similar_kinds(data):
    """The right kind has the highest probability; similar kinds have more of the rest than other kinds; the whole
    picture has no distribution."""
    shares = Counter()
    for picture in data.pictures():
        classes, kinds = picture.classes, [label.split()[1] for label in picture.region_names[:-1]]
        assert classes.names == tuple(KINDS) and not classes.known[-1] and classes.known[:-1].all()
        assert [classes.names[first] for first in classes.ids[:-1, 0]] == kinds
        assert (classes.probabilities[:-1, 0] > 0.5).all() and (classes.probabilities[:-1].sum(1) <= 1 + 1e-6).all()
        for kind, chances in zip(kinds, classes.distributions(), strict=False):
            if kind == "dog":
                shares += Counter(dict(zip(classes.names, chances.tolist(), strict=True)))
    assert shares["cat"] > 3 * shares["car"] and shares["horse"] > 3 * shares["kite"]


def test_a_plural_label_has_its_kind_and_the_background_has_none(data):
    classes = detector_classes(data.scene_sets("train")[0][0][0], ["blue cats", "background"])
    assert classes.names[classes.ids[0, 0]] == "cat" and classes.known.tolist() == [True, False]
