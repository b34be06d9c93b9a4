"""RefCOCO exported and read again has the same examples and pictures."""

import pytest
from kit import published
from kit.exports import FEW, assert_same, assert_same_again, export_and_read
from mmgen_tasks import Refcoco, SceneExpressions

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("config", [SceneExpressions(**FEW), SceneExpressions(**FEW, proposals=6)])
def test_drawn_scenes_are_the_same_after_export(tmp_path, config):
    again = export_and_read(tmp_path, config, "refcoco")
    assert_same(config, again, exact=False)


def test_published_files_are_the_same_after_export(tmp_path):
    config = Refcoco(folder=published.refcoco(tmp_path / "in"), images="images", test_split="testA")
    assert_same_again(tmp_path, config, "refcoco")
