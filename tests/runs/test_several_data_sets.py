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
    assert "has its own data (scenes, table)." in (place / "report.html").read_text(encoding="utf-8")
    assert "nothing to do" in mmgen_here(tmp_path, "run", "toy.toml").stdout
