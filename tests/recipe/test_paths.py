"""Paths in a recipe are relative to its file; a finished run finds its files from anywhere."""

import json
import os
import shutil
from pathlib import Path

import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here
from mmgen_data import Table
from mmgen_encoders import Bert

from mmgen.recipe.load import load
from mmgen.recipe.paths import from_folder, path_prefixes
from mmgen.registry import installed
from mmgen.storage.run_folder import RunFolder

FAST = ["--metric", "captioneval", "--set", "captioneval.meteor=false", "--set", "captioneval.tokenizer=own"]
LINES = [{"id": str(n), "caption": f"a dog {n}", "questions": [f"whose dog is {n} ?"]} for n in range(12)]


@pytest.fixture
def project(tmp_path) -> Path:
    """project/{recipes/toy.toml, data/{train,test}.jsonl}; the recipe names ../data."""
    for folder in ("recipes", "data"):
        (tmp_path / "project" / folder).mkdir(parents=True)
    for split in ("train", "test"):
        text = "".join(json.dumps(line) + "\n" for line in LINES)
        (tmp_path / "project/data" / f"{split}.jsonl").write_text(text)
    text = toys.recipe(
        data={"type": "table", "folder": "../data", "validation_split": ""},
        steps={"first": {"inputs": ["caption"], "train": ["backbone"]}},
        metrics={"overlap": {"type": "captioneval", "meteor": False, "tokenizer": "own"}},
    )
    text = text.replace("train_size = 24\nval_size = 4\ntest_size = 6\n", "")
    (tmp_path / "project/recipes/toy.toml").write_text(text)
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


@pytest.mark.slow
def test_a_finished_run_finds_its_data_from_anywhere_and_does_without(project, monkeypatch):
    done = mmgen_here(project, "run", "recipes/toy.toml")
    assert done.returncode == 0, done.stderr
    run = project / PLACE
    monkeypatch.chdir(project.parent)
    assert RunFolder(run).recipe(installed()).data.folder.resolve() == project / "data"
    again = mmgen_here(project, "run", project / "recipes/toy.toml")  # the same files, written otherwise
    assert "nothing to do" in again.stdout, again.stderr
    everything = (
        ["report", run],
        ["score", run / "steps/first/generations.jsonl", "--references", run, *FAST],
    )
    shutil.move(project, project.with_name("moved"))  # together: all is found
    moved = project.with_name("moved")
    assert "nothing to do" in mmgen_here(moved, "run", "recipes/toy.toml").stdout
    alone = project.parent / "elsewhere" / "seed-0"
    shutil.copytree(moved / PLACE, alone)
    shutil.rmtree(moved / "data")
    for name, *rest in everything:
        result = mmgen_here(project.parent, name, *(str(argument).replace(str(run), str(alone)) for argument in rest))
        assert result.returncode == 0, result.stderr
    judged = mmgen_here(project.parent, "judge", "make", alone, "--n", "2", "--out", alone.parent / "sheet.html")
    assert judged.returncode == 0, judged.stderr
    assert "whose dog is" in (alone / "report.html").read_text()
    (alone / "examples.jsonl").write_text("{")
    broken = mmgen_here(project.parent, "report", alone)
    assert broken.returncode == 1 and "examples.jsonl: damaged" in broken.stderr


@pytest.mark.slow
def test_features_are_found_again_from_another_folder(project):
    text = (project / "recipes/toy.toml").read_text()
    from PIL import Image

    (project / "data/photos").mkdir()
    lines = [{**line, "image": f"{line['id']}.png"} for line in LINES]
    for split in ("train", "test"):
        (project / "data" / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for line in LINES:
        Image.new("RGB", (32, 24), (int(line["id"]) * 20, 90, 90)).save(project / f"data/photos/{line['id']}.png")
    text = text.replace(
        "[data]\n", '[inputs.image]\ntype = "grid"\nextractor = { type = "timm_grid" }\n[data]\nimages = "photos"\n'
    )
    (project / "recipes/toy.toml").write_text(text.replace('inputs = ["caption"]', 'inputs = ["image", "caption"]'))
    done = mmgen_here(project, "run", "recipes/toy.toml")
    assert done.returncode == 0, done.stderr
    (features,) = (project / "runs/toy/default/features").iterdir()
    generated = mmgen_here(project.parent, "generate", project / PLACE, "--input", "image=3", "--caption", "a dog")
    assert generated.returncode == 0, generated.stderr  # a key of the run's features
    output = f"output={project}/runs"
    again = mmgen_here(project.parent, "run", "project/recipes/toy.toml", "--set", output)
    assert "nothing to do" in again.stdout, again.stderr
    (project / PLACE / "steps/first/scores.json").unlink()
    assert mmgen_here(project.parent, "run", "project/recipes/toy.toml", "--set", output).returncode == 0
    assert [*(project / "runs/toy/default/features").iterdir()] == [features]
