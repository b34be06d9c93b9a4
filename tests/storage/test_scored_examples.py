"""The examples that a run is scored on: saved in its folder, and read when the data are gone. A damaged copy is in
tests/transcripts/moved.txt."""

from types import SimpleNamespace

import pytest
from kit import toys
from kit.refusals import refusal

from mmgen.errors import DataError
from mmgen.examples import All, Example
from mmgen.files import write_json
from mmgen.storage.scored_examples import FILE, ScoredExamples, keep

EXAMPLE = Example(
    "a", {"image": All(("p", "q")), "caption": ("one", "two")}, ("x\u2028y\x85",), {}, {"choices": ("x", "y")}
)


@pytest.fixture
def recipe(tmp_path):
    return toys.loaded(tmp_path, toys.RECIPE)


def keep_one(recipe, folder, example=EXAMPLE):
    keep(recipe, SimpleNamespace(scored_by=lambda step: [example]), folder)


def test_the_copy_is_read_and_the_rest_is_asked_of_the_data(recipe, tmp_path, monkeypatch):
    keep_one(recipe, tmp_path)
    step, data = next(iter(recipe.steps)), recipe.data.build()
    saved = ScoredExamples(recipe, tmp_path).dataset_of(step)
    assert list(saved.split("test")) == [EXAMPLE] == list(ScoredExamples(recipe, tmp_path).scored_by(step))
    assert (saved.splits(), saved.describe()) == (data.splits(), data.describe())
    assert list(saved.split("train")) == list(data.split("train")) and next(iter(saved.pictures())).key

    def gone(self):
        raise DataError("toy.json: no such file")

    monkeypatch.setattr(type(recipe.data), "build", gone)
    write_json(tmp_path / "data.json", {"fingerprint": "x", "name": "toys"})
    saved = ScoredExamples(recipe, tmp_path).dataset_of("")
    assert list(saved.split("test")) == [EXAMPLE] and saved.splits() == ("test",)
    assert saved.describe() == {"name": "toys"}
    for ask in (saved.pictures, lambda: saved.split("train")):
        assert refusal(ask) == "toy.json: no such file"


def test_examples_that_json_changes_are_not_saved(recipe, tmp_path):
    keep_one(recipe, tmp_path, Example("a", {"caption": "x"}, (), {"seen": {1, 2}}))
    assert not (tmp_path / FILE).exists()
