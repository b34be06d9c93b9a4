"""What `mmgen compare` says about the settings of runs, and how it names them. Its tables: tests/runs/test_seeds.py."""

from pathlib import Path

import pytest
from kit.toys import RECIPE

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.report.compare import _settings
from mmgen.report.short_paths import tell_apart
from mmgen.storage.run_folder import differences


def test_a_changed_training_setting_is_reported_once_unless_a_step_goes_its_own_way(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)

    def settings(*sets):
        return _settings(load(tmp_path / "toy.toml", installed(), sets=sets)[0])

    before, slower = settings("seed=3"), settings("training.learning_rate=0.5")
    assert differences(before, slower) == ["training.learning_rate: 0.001 -> 0.5"]
    (line,) = differences(before, settings("steps.second.training.learning_rate=0.5"))
    assert line == "steps.second.training.learning_rate: null -> 0.5"


@pytest.mark.parametrize(
    "paths, labels",
    [
        (["runs/vqa/sample/seed-0"], ["seed-0"]),
        (["runs/vqa/sample/seed-0", "runs/vqg/sample/seed-0"], ["vqa", "vqg"]),
        (["runs/vqa/sample", "runs/vqg/sample/seed-0"], ["vqa/sample", "vqg/sample/seed-0"]),
        (["runs/vqa", "runs/vqa/seed-0"], ["vqa", "vqa/seed-0"]),
        (["a/one.json", "a/two.json", "b/one.json"], ["a/one.json", "a/two.json", "b/one.json"]),
    ],
)
def test_labels_differ_where_paths_do(paths, labels):
    assert tell_apart([Path(path) for path in paths]) == labels
