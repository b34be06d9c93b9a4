"""A run whose first step trains on pictures and on texts alone."""

import json
from pathlib import Path

import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here

import mmgen
from mmgen.features.store import FeatureStore

pytestmark = pytest.mark.slow

SCENES = {"type": "scenes", "train_size": 12, "val_size": 2, "test_size": 3}
TEXTS = {"type": "table", "folder": "texts", "validation_split": "", "test_split": "train"}


def write(folder: Path, name: str, **inputs: str) -> None:
    """Six examples whose captions contain a unique word."""
    (folder / name).mkdir()
    lines = [{"id": f"{name}{n}", "caption": f"a zebra near {n}", **inputs, "questions": ["why ?"]} for n in range(6)]
    (folder / name / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def recipe(folder: Path, inputs: dict, *data: dict) -> None:
    """A step that trains on masked words of these data, and one that writes."""
    learnt = {"inputs": [*inputs], "train": [*inputs, "backbone"]}
    steps = {
        "pre": {**learnt, "objectives": ["words"], "evaluate": False, "data": [*data]},
        "write": {**learnt, "start": "pre", "inputs": ["caption"], "train": ["backbone"]},
    }
    main = {key: value for key, value in SCENES.items() if key != "type"}
    words = {"words": {"type": "masked_words"}}
    (folder / "toy.toml").write_text(
        toys.recipe(inputs=inputs, objectives=words, training={"epochs": 2}, steps=steps, data=main)
    )


def test_texts_are_trained_beside_pictures(tmp_path):
    write(tmp_path, "texts")
    extractor = {"type": "roi", "model": "test_resnet", "image_size": 64}
    inputs = {"image": {"type": "regions", "extractor": extractor}, "caption": {"type": "text"}}
    recipe(tmp_path, inputs, SCENES, {**TEXTS, "inputs": ["caption"], "share": 0.5})
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    place = tmp_path / PLACE
    records = [json.loads(line) for line in (place / "steps/pre/log.jsonl").read_text().splitlines()]
    assert "validation_loss" in records[-1]
    (store,) = place.parent.glob("features/*")
    assert len(FeatureStore(store)) == 12 + 2 + 3
    assert "zebra" in mmgen.load(place).model.backbone.tokenizer.get_vocab()
    assert (place / "steps/write/scores.json").exists() and not (place / "steps/pre/scores.json").exists()
    assert "has its own data (scenes, jsonl)." in (place / "report.html").read_text(encoding="utf-8")
    assert "nothing to do" in mmgen_here(tmp_path, "run", "toy.toml").stdout
    result = mmgen_here(tmp_path, "data", "check", "toy.toml")
    assert result.returncode == 0, result.stderr
    assert "data of step 'pre', 'scenes': 12 examples, " in result.stdout
    assert "data of step 'pre', 'jsonl': 6 examples, 6 targets\n" in result.stdout


def test_a_data_set_that_lacks_an_input_is_named(tmp_path):
    write(tmp_path, "texts")
    write(tmp_path, "places", place="a field")
    recipe(tmp_path, {"caption": {"type": "text"}, "place": {"type": "text"}}, {**TEXTS, "folder": "places"}, TEXTS)
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 1 and "learning" not in done.stdout
    assert done.stderr.splitlines()[-1] == (
        "error: step 'pre', data 'jsonl 2', split 'train': 6 of 6 examples have no 'place' (train-texts0, "
        "train-texts1, train-texts2, ...); remove these examples, or remove 'place' from its inputs"
    )
    result = mmgen_here(tmp_path, "data", "check", "toy.toml")
    assert result.returncode == 1
    assert result.stderr.splitlines()[1:] == [done.stderr.splitlines()[-1].replace("error:", " ")]


def test_texts_without_targets_are_not_written(tmp_path):
    phrases = {"type": "scene_phrases", "train_size": 5, "val_size": 1, "captions": 1}
    recipe(tmp_path, {"caption": {"type": "text"}}, SCENES, phrases)
    text = (tmp_path / "toy.toml").read_text().replace('objectives = ["words"]', 'objectives = ["generator", "words"]')
    (tmp_path / "toy.toml").write_text(text)
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 1 and "learning" not in done.stdout
    assert done.stderr.splitlines()[-1] == (
        "error: step 'pre', data 'scene_phrases', split 'train': 10 of 10 examples have no target "
        "(phrases36-train-00000-0-0, phrases36-train-00000-0-1, phrases36-train-00001-0-0, ...); remove these "
        "examples, or remove 'generator' from its objectives"
    )
