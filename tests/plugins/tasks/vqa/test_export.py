"""VQA exported and read again has the same examples and pictures."""

import json

import pytest
from kit import published
from kit.exports import FEW, assert_same, assert_same_again, export_and_read
from mmgen_tasks import SceneAnswers, VqaAnswers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("config", [SceneAnswers(**FEW), SceneAnswers(**FEW, train_targets="all")])
def test_drawn_scenes_are_the_same_after_export(tmp_path, config):
    again = export_and_read(tmp_path, config, "vqa2")
    again = again.model_copy(update={"train_targets": config.train_targets})
    assert again.build().vocabularies() == config.build().vocabularies()
    assert_same(config, again, exact=True)


def test_published_files_are_the_same_after_export(tmp_path):
    config = VqaAnswers(folder=published.vqa(tmp_path / "in"), images="images", test_split="val")
    assert_same_again(tmp_path, config, "vqa2")


def test_numeric_ids_stay_numbers(tmp_path):
    export_and_read(tmp_path, VqaAnswers(folder=published.vqa(tmp_path / "in"), images="images"), "vqa2")
    (row, *_) = json.loads((tmp_path / "out/v2_OpenEnded_mscoco_val2014_questions.json").read_text())["questions"]
    assert row == {"question_id": 20, "image_id": 20, "question": "Is it red?"}
