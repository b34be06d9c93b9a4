"""VCR exported and read again has the same examples and pictures."""

import pytest
from kit import published
from kit.exports import FEW, assert_same, assert_same_again, close, export_and_read
from mmgen_tasks import SceneChoices, Vcr

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("config", [SceneChoices(**FEW), SceneChoices(**FEW, tags="kinds")])
def test_drawn_scenes_are_the_same_after_export(tmp_path, config):
    again = export_and_read(tmp_path, config, "vcr")
    assert_same(config, again, exact=True)


def test_published_files_are_the_same_after_export(tmp_path):
    config = Vcr(folder=published.vcr(tmp_path / "in"), images="vcr1images", test_split="val")
    assert_same_again(tmp_path, config, "vcr")


def test_boxes_and_pictures_are_the_same_after_export(tmp_path):
    config = SceneChoices(**FEW)
    again = {picture.key: picture for picture in export_and_read(tmp_path, config, "vcr").build().pictures()}
    for picture in config.build().pictures():
        assert close(list(picture.boxes), list(again[picture.key].boxes))
        assert picture.load().tobytes() == again[picture.key].load().tobytes()
