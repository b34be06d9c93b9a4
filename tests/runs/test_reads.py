"""Inputs that read a field of another name: queried by either name, and counted in the summary of the data."""

from pathlib import Path

import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here

import mmgen

RECIPE = toys.recipe(
    inputs={"words": {"type": "text", "fields": ["caption"]}},
    steps={"first": {"inputs": ["words"], "train": ["backbone"]}},
    data={"train_size": 16, "test_size": 4},
    metrics=None,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reads")
    (folder / "toy.toml").write_text(RECIPE)
    done = mmgen_here(folder, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_an_input_and_the_field_it_reads_are_the_same_query(run, monkeypatch):

    said = [mmgen_here(run, "generate", PLACE, "--input", f"{name}=a red ball") for name in ("words", "caption")]
    assert said[0].returncode == 0, said[0].stderr
    assert [result.stdout.splitlines()[0] for result in said] == ["words", "caption"]  # the query's name
    assert said[0].stdout.splitlines()[1:] == said[1].stdout.splitlines()[1:]
    monkeypatch.chdir(run)
    loaded = mmgen.load(PLACE)
    (by_input, by_field) = loaded.ask({"words": "a red ball"}), loaded.ask({"caption": "a red ball"})
    assert (by_input.value, by_input.score) == (by_field.value, by_field.score) and by_input.value in said[0].stdout
