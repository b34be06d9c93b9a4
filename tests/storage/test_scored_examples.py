"""The examples that a run is scored on: saved in its folder, and read when the data are gone."""

import json
from dataclasses import asdict

import pytest
from kit import toys

from mmgen.errors import DataError, RunError
from mmgen.examples import All, Example
from mmgen.files import write_json
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.scored_examples import FILE, SavedExamples, ScoredExamples, keep

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


def gone(monkeypatch, recipe):
    def build(self):
        raise DataError("toy.json: no such file")

    monkeypatch.setattr(type(recipe.data), "build", build)


def test_the_copy_is_read_and_the_rest_is_asked_of_the_data(recipe, tmp_path, monkeypatch):
    keep(recipe, Scored(EXAMPLE), tmp_path)
    step = next(iter(recipe.steps))
    saved = ScoredExamples(recipe, tmp_path).dataset_of(step)
    assert list(saved.split("test")) == [EXAMPLE] == list(ScoredExamples(recipe, tmp_path).scored_by(step))
    data = recipe.data.build()
    assert saved.splits() == data.splits() and list(saved.split("train")) == list(data.split("train"))
    assert saved.describe() == data.describe() and next(iter(saved.pictures())).key
    gone(monkeypatch, recipe)
    saved = ScoredExamples(recipe, tmp_path).dataset_of("")
    assert list(saved.split("test")) == [EXAMPLE] and saved.splits() == ("test",) and saved.describe() == {}
    write_json(tmp_path / "data.json", {"fingerprint": "x", "name": "toys"})
    assert saved.describe() == {"name": "toys"}
    for ask in (saved.pictures, lambda: saved.split("train")):
        with pytest.raises(DataError, match="toy.json: no such file"):
            ask()
    (tmp_path / FILE).unlink()
    with pytest.raises(DataError, match="toy.json: no such file"):
        ScoredExamples(recipe, tmp_path).dataset_of("")


def test_examples_that_json_changes_are_not_saved(recipe, tmp_path):
    keep(recipe, Scored(Example("a", {"caption": "x"}, (), {"seen": {1, 2}})), tmp_path)
    assert not (tmp_path / FILE).exists()


def test_a_text_may_contain_a_line_separator(recipe, tmp_path):
    example = Example("a", {}, ("x\u2028y\x85",), {}, {})
    (tmp_path / FILE).write_text(json.dumps(asdict(example), ensure_ascii=False) + "\n", encoding="utf-8")
    assert SavedExamples(recipe.data, tmp_path / FILE).split("test") == (example,)


def test_a_damaged_copy(recipe, tmp_path):
    line = {"id": "a", "inputs": {}, "labels": {}, "targets": "x", "facts": {}}
    (tmp_path / FILE).write_text(json.dumps(line)[:-9])
    with pytest.raises(RunError, match=f"{FILE}: damaged: .*; copy the file from where the run was made"):
        SavedExamples(recipe.data, tmp_path / FILE).split("test")
