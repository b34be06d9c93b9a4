"""NLVR2 exported and read again has the same examples and pictures."""

import pytest
from kit import published
from kit.exports import FEW, assert_same, assert_same_again, export_and_read
from mmgen_tasks import Nlvr2, ScenePairs

from mmgen.errors import DataError

pytestmark = pytest.mark.slow


def test_drawn_scenes_are_the_same_after_export(tmp_path):
    config = ScenePairs(**FEW)
    again = export_and_read(tmp_path, config, "nlvr2")
    assert_same(config, again, exact=True)


def test_published_files_are_the_same_after_export(tmp_path):
    config = Nlvr2(folder=published.nlvr2(tmp_path / "in"), images="images", test_split="test1")
    assert_same_again(tmp_path, config, "nlvr2")


def test_pairs_of_any_two_pictures_have_no_names_in_this_format(tmp_path):
    config = ScenePairs(**FEW, pairings=8)
    with pytest.raises(DataError, match="the id must be split-set-pair-sentence, and its pictures' names"):
        export_and_read(tmp_path, config, "nlvr2")
