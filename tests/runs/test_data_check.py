"""What data lack: `mmgen data check` prints it, and a run stops at the first thing that stops it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kit import toys

from mmgen.cli import main
from mmgen.data.datasets import Datasets
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.data_check import findings

LINES = [
    {"id": "1", "image": "1.jpg", "note": "a dog on a beach", "questions": ["whose dog is it ?", "where is it ?"]},
    {"id": "2", "image": "2.jpg", "note": "a cat", "questions": ["why is it here ?"]},
    {"id": "3", "image": "3.jpg", "questions": ["what is it ?"]},
    {"id": "4", "image": "4.jpg", "questions": ["what is it ?"]},
]


@pytest.fixture
def recipe(tmp_path, monkeypatch) -> Path:
    """Pictures 1 and 2 have features; 3 and 4 have no note."""
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    with StoreWriter(tmp_path / "regions.h5", {"extractor": "made up"}) as writer:
        for key in ("1", "2"):
            writer.add(Record(key, np.ones((3, 4), np.float32), np.tile(np.float32([0, 0, 1, 1]), (3, 1))))
    text = toys.recipe(
        inputs={"image": {"type": "regions", "features": "regions.h5"}, "note": {"type": "text"}},
        steps={
            "words": {"inputs": ["note"], "train": ["backbone"]},
            "both": {"inputs": ["image", "note"], "train": ["backbone"]},
        },
        data={"type": "table", "folder": ".", "validation_split": ""},
        metrics=None,
    )
    (tmp_path / "toy.toml").write_text(text.replace("train_size = 24\nval_size = 4\ntest_size = 6\n", ""))
    return tmp_path / "toy.toml"


def check(recipe: Path, *more: str):
    return CliRunner().invoke(main, ["data", "check", str(recipe), *more], catch_exceptions=False)


def test_what_stops_a_run_is_an_exit_code(recipe):
    done = check(recipe)
    assert done.exit_code == 1
    words = "2 of 4 examples have no 'note'; remove these examples, or remove 'note' from its inputs"
    images = f"{Path.cwd()}/regions.h5: no features for 2 of 4 images; add them, or leave the images out"
    assert done.output.endswith(
        "error: this would stop a run:\n"
        f"  step 'words', split 'train': {words} (train-3, train-4)\n"
        f"  step 'words', split 'test': {words} (test-3, test-4)\n"
        f"  step 'both', split 'train': {images} (3, 4)\n"
        f"  step 'both', split 'test': {images} (3, 4)\n"
    )
    for split in ("train", "test"):
        (recipe.parent / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES[:2]))
    assert check(recipe).exit_code == 0


def test_a_run_stops_at_the_first_of_them(recipe):
    done = CliRunner().invoke(main, ["run", str(recipe)], catch_exceptions=False)
    assert done.exit_code == 1 and "training" not in done.output
    assert done.output.partition("error: ")[2] == (
        "step 'words', split 'train': 2 of 4 examples have no 'note'; remove these examples, or remove 'note' from "
        "its inputs (train-3, train-4)\n"
    )


def test_examples_without_an_input_or_a_target_are_counted(tmp_path, monkeypatch):
    (tmp_path / "toy.toml").write_text(toys.recipe(inputs={"caption": {"type": "text"}}))
    recipe = load(tmp_path / "toy.toml", installed())[0]
    datasets = Datasets(recipe)
    split = datasets.main.split
    examples = list(split("train"))
    for number in (3, 8, 20):
        examples[number] = replace(examples[number], inputs={"caption": ()})
    examples[11] = replace(examples[11], targets=())
    monkeypatch.setattr(type(datasets.main), "split", lambda self, name: examples if name == "train" else split(name))
    datasets = Datasets(recipe)
    stops = [finding for finding in findings(recipe, datasets, recipe.ordered()) if finding.stops]
    assert "3 of 24 examples have no 'caption'" in stops[0].what and len(stops[0].ids) == 3
    assert "1 of 24 examples have no target" in stops[1].what and stops[1].ids == [examples[11].id]
