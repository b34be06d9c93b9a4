"""Proposals are near the target and elsewhere."""

import pytest
from mmgen_tasks import SceneExpressions
from mmgen_vl.boxes import iou


@pytest.mark.slow
def test_proposals_are_near_the_target_and_elsewhere():
    """98 things in 100 have a right box; 5 boxes in 100 are right."""
    data = SceneExpressions(train_size=200, val_size=1, test_size=1, proposals=36).build()
    reached, share = [], []
    for scene_set, picture in zip(data.scene_sets("train"), data.pictures(), strict=False):
        assert picture.key == scene_set.scenes[0].id == scene_set.examples[0].inputs["image"]
        assert len(picture.boxes) == len(picture.region_names) == 36
        for box, label in zip(picture.boxes, picture.region_names, strict=True):
            right = [f"{t.color} {t.kind}" for t in scene_set.scenes[0].things if iou(t.box, box) >= 0.5]
            assert label in right or (label == "background" and not right)
        for example in scene_set.examples:
            right = [iou(example.labels["box"], box) >= 0.5 for box in picture.boxes]
            reached.append(any(right))
            share.append(sum(right) / 36)
    assert 0.95 < sum(reached) / len(reached) < 1
    assert sum(share) / len(share) == pytest.approx(0.05, abs=0.01)
