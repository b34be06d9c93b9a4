"""Flickr30K Entities exported and read again has the same examples and pictures."""

import pytest
from kit import published
from kit.exports import FEW, assert_same, assert_same_again, export_and_read
from mmgen_tasks import Flickr30kEntities, ScenePhrases

pytestmark = pytest.mark.slow


def test_drawn_scenes_are_the_same_after_export(tmp_path):
    config = ScenePhrases(**FEW)
    again = export_and_read(tmp_path, config, "flickr30k")
    assert_same(config, again, exact=False)


def test_published_files_are_the_same_after_export(tmp_path):
    config = Flickr30kEntities(folder=published.flickr30k(tmp_path / "in"), images="images", test_split="test")
    assert_same_again(tmp_path, config, "flickr30k", exact=False)
