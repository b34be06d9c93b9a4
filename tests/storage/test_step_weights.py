"""A step needs only its own inputs: run alone, it needs no features of other inputs, and trains to the same weights."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from kit import toys
from kit.toys import PLACE, mmgen_here

import mmgen
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record

LINES = [
    {"id": str(n), "image": f"{n}.jpg", "caption": f"a dog {n}", "questions": ["whose dog is it ?"]} for n in range(8)
]


def prepared(folder: Path, inputs: dict) -> Path:
    for split in ("train", "test"):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    text = toys.recipe(
        inputs=inputs,
        steps={
            "words": {"inputs": ["caption"], "train": ["backbone"]},
            "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "words"},
        },
        data={"type": "table", "folder": ".", "validation_split": ""},
        metrics=None,
    )
    (folder / "toy.toml").write_text(text.replace("train_size = 24\nval_size = 4\ntest_size = 6\n", ""))
    return folder


def store(path: Path) -> None:
    draw = np.random.default_rng(0)
    with StoreWriter(path, {"extractor": "made up"}) as writer:
        for line in LINES:
            boxes = np.tile(np.float32([0, 0, 1, 1]), (3, 1))
            writer.add(Record(line["id"], draw.normal(size=(3, 4)).astype(np.float32), boxes))


def ran(folder: Path, *more: str) -> str:
    done = mmgen_here(folder, "run", "toy.toml", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_step_alone_needs_no_features_that_it_does_not_read_and_changes_nothing(tmp_path, monkeypatch):
    inputs = {"image": {"type": "regions", "features": "regions.h5"}, "caption": {"type": "text"}}
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    full, parts = (prepared(tmp_path / name, inputs) for name in ("whole", "parts"))
    store(full / "regions.h5")
    ran(full)
    assert "regions.h5: no features" in mmgen_here(parts, "run", "toy.toml").stderr
    ran(parts, "--step", "words")
    monkeypatch.chdir(parts)
    assert mmgen.load(PLACE).model.inputs == ("caption",)
    (text,) = mmgen.load(PLACE).ask({"caption": "a dog"}).texts
    ran(parts, "--step", "words")  # nothing to do, and nothing is asked for
    shutil.copytree(full / "regions.h5", parts / "regions.h5")
    ran(parts)
    first, second = (toys.weights(folder, "both") for folder in (full, parts))
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
    loaded = mmgen.load(PLACE, "words")
    assert loaded.model.inputs == ("caption",) and loaded.ask({"caption": "a dog"}).texts == (text,)
    beams = 'steps.beams={start="words", train=[], decoding={num_beams=2}}'
    ran(parts, "--set", beams)
    assert mmgen.load(PLACE, "beams").model.inputs == ("caption",)
    (parts / PLACE / "steps/words/scores.json").unlink()  # its weights have no W, those of `both` have one
    ran(parts, "--step", "words", "--set", beams)
