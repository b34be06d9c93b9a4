"""The examples that a run is scored on: saved in its folder, and read when the data are gone."""

import json
from dataclasses import asdict

import pytest
from kit import toys

from mmgen.errors import DataError, RunError
from mmgen.examples import All, Example
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.scored_examples import FILE, SavedExamples, ScoredExamples, dataset_of, keep

EXAMPLE = Example("a", {"image": All(("p", "q")), "caption": ("one", "two")}, ("x",), {}, {"choices": ("x", "y")})


class Scored:
    def __init__(self, *examples):
        self.examples = examples

    def scored_by(self, step):
        return self.examples


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe())
    return load(tmp_path / "toy.toml", installed())[0]


def test_examples_are_read_as_they_were(recipe, tmp_path):
    keep(recipe, Scored(EXAMPLE), tmp_path)
    saved = SavedExamples("test", tmp_path / FILE, "gone")
    assert list(saved.split("test")) == [EXAMPLE] and saved.splits() == ("test",)
    with pytest.raises(DataError) as error:
        saved.split("train")
    assert str(error.value) == f"{tmp_path / FILE}: has only the split 'test'; gone"
    with pytest.raises(DataError, match="no pictures: gone"):
        saved.pictures()


def test_examples_that_json_changes_are_not_saved(recipe, tmp_path):
    keep(recipe, Scored(Example("a", {"caption": "x"}, (), {"seen": {1, 2}})), tmp_path)
    assert not (tmp_path / FILE).exists()


def test_the_copy_is_read_where_the_data_are_gone(recipe, tmp_path, monkeypatch, caplog):
    keep(recipe, Scored(EXAMPLE), tmp_path)

    def gone(self):
        raise DataError("toy.json: no such file")

    monkeypatch.setattr(type(recipe.data), "build", gone)
    step = next(iter(recipe.steps))
    assert list(ScoredExamples(recipe, tmp_path).scored_by(step)) == [EXAMPLE]
    assert caplog.messages == [
        f"{tmp_path}: toy.json: no such file; using the run's copy of its examples, which has no pictures"
    ]
    (tmp_path / FILE).unlink()
    with pytest.raises(DataError, match="toy.json: no such file"):
        dataset_of(recipe, tmp_path)


def test_a_text_may_contain_a_line_separator(tmp_path):
    example = Example("a", {}, ("x\u2028y\x85",), {}, {})
    (tmp_path / FILE).write_text(json.dumps(asdict(example), ensure_ascii=False) + "\n", encoding="utf-8")
    assert SavedExamples("test", tmp_path / FILE, "gone").split("test") == (example,)


def test_a_damaged_copy(tmp_path):
    line = {"id": "a", "inputs": {}, "labels": {}, "targets": "x", "facts": {}}
    (tmp_path / FILE).write_text(json.dumps(line)[:-9])
    with pytest.raises(RunError, match=f"{FILE}: damaged: .*; copy the file from where the run was made"):
        SavedExamples("test", tmp_path / FILE, "gone").split("test")
