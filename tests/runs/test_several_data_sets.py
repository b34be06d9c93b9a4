"""A run whose first step trains on data of its own: pictures, and texts alone."""

import json

import pytest
from kit import toys
from kit.toys import PLACE

import mmgen
from mmgen.features.store import FeatureStore

pytestmark = pytest.mark.slow

SCENES = {"train_size": 12, "val_size": 2, "test_size": 3}
TEXTS = {"type": "table", "folder": "texts", "validation_split": "", "test_split": "train"}
BOTH = {"inputs": ["image", "caption"], "train": ["image", "caption", "backbone"], "objectives": ["words"]}
RECIPE = toys.recipe(
    inputs={"image": {"type": "regions", "extractor": toys.ROI}, "caption": {"type": "text"}},
    objectives={"words": {"type": "masked_words"}},
    training={"epochs": 2},
    steps={
        "pre": {
            **BOTH,
            "evaluate": False,
            "data": [{"type": "scenes", **SCENES}, {**TEXTS, "inputs": ["caption"], "share": 0.5}],
        },
        "write": {"inputs": ["caption"], "train": ["backbone"], "start": "pre"},
    },
    data=SCENES,
)


def test_texts_are_trained_beside_pictures(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    (tmp_path / "texts").mkdir()
    lines = [{"id": str(n), "caption": f"a zebra near {n}", "questions": ["why ?"]} for n in range(6)]
    (tmp_path / "texts/train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    toys.ran(tmp_path)
    place = tmp_path / PLACE
    records = [json.loads(line) for line in (place / "steps/pre/log.jsonl").read_text().splitlines()]
    assert "validation_loss" in records[-1]
    (store,) = place.parent.glob("features/*")
    assert len(FeatureStore(store)) == 12 + 2 + 3
    assert "zebra" in mmgen.load(place).model.backbone.tokenizer.get_vocab()
    assert {path.name for path in (place / "steps/pre").iterdir()} == {"weights.safetensors", "log.jsonl"}
    assert (place / "steps/write/scores.json").exists() and "pre" not in (place / "table.md").read_text()
    assert "has its own data (scenes, table)." in (place / "report.html").read_text(encoding="utf-8")
