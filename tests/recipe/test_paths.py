"""Paths in a recipe are relative to its file. A finished run that is moved is in tests/transcripts/moved.txt."""

import os
from pathlib import Path

import pytest
from kit import toys
from mmgen_data import Table
from mmgen_encoders import Bert

from mmgen.recipe.load import load
from mmgen.recipe.paths import from_folder, path_prefixes
from mmgen.registry import installed


@pytest.fixture
def project(tmp_path) -> Path:
    """A folder with recipes/toy.toml, which names ../data."""
    (tmp_path / "project/recipes").mkdir(parents=True)
    data = {"type": "table", "folder": "../data", **dict.fromkeys(("train_size", "val_size", "test_size"))}
    (tmp_path / "project/recipes/toy.toml").write_text(toys.recipe(data=data))
    return tmp_path / "project"


def folder_of(recipe: Path, *sets: str) -> str:
    return str(load(recipe, installed(), None, sets)[0].data.folder)


def test_a_path_counts_from_the_file_that_it_is_written_in(project, monkeypatch):
    monkeypatch.chdir(project)
    assert folder_of(Path("recipes/toy.toml")) == "data"
    assert folder_of(project / "recipes/toy.toml") == str(project / "data")
    monkeypatch.chdir(project / "recipes")
    assert folder_of(Path("toy.toml")) == "../data"
    monkeypatch.chdir(project.parent)
    assert folder_of(Path("project/recipes/toy.toml")) == "project/data"
    assert folder_of(Path("project/recipes/toy.toml"), "data.folder=here") == "here"  # --set: from where one stands
    (project / "child.toml").write_text('extends = "recipes/toy.toml"\n')
    assert folder_of(Path("project/child.toml")) == "project/data"  # the parent's paths stay the parent's
    (project / "child.toml").write_text('extends = "recipes/toy.toml"\n[data]\nfolder = "own"\n')
    assert folder_of(Path("project/child.toml")) == "project/own"


def test_behind_a_link_the_folder_above_is_that_of_the_file(tmp_path):
    (tmp_path / "a/recipes").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/recipes").symlink_to(tmp_path / "a/recipes")
    resolved = from_folder("../data", tmp_path / "b/recipes")
    assert os.path.realpath(resolved) == os.path.realpath(tmp_path / "a/data")


def test_a_name_of_a_hub_stays_a_name_where_no_such_folder_is_there(tmp_path):
    assert path_prefixes(Bert, "weights") == ("",)  # a name too
    assert path_prefixes(Table, "folder") == () and path_prefixes(Table, "images") is None  # which counts from folder
    assert from_folder("google/bert", tmp_path, either=True) == "google/bert"
    (tmp_path / "google/bert").mkdir(parents=True)
    assert from_folder("google/bert", tmp_path, either=True) == str(tmp_path / "google/bert")
    assert from_folder("../bert", tmp_path / "google", either=True) == str(tmp_path / "bert")
