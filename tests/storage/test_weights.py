"""Files of weights; weights that do not fit; a step needs only its own inputs, and trains to the same weights alone."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from kit import toys
from kit.refusals import refusal
from kit.stored import fill, record
from kit.toys import PLACE, mmgen_here, ran
from torch import nn

import mmgen
from mmgen.storage.weights import load_state, read_tensors, write_tensors


@pytest.mark.parametrize(
    ("weight", "bias", "message"),
    [
        (torch.ones(2, 3), torch.ones(2), "1 tensors differ, such as 1.weight: shape (2, 3) in"),
        (torch.ones(2, 2), torch.ones(3), "1 tensors differ, such as 1.bias: shape (3,) in"),
    ],
)
def test_weights_of_another_model(weight, bias, message):
    model = nn.Sequential(nn.GELU(), nn.Linear(2, 2))
    said = refusal(load_state, model, {"1.weight": weight, "1.bias": bias}, "weights.safetensors")
    assert said.startswith("weights.safetensors: ") and message in said


TENSORS = {"b": torch.arange(6.0).view(2, 3), "a": torch.ones(2)}


def test_equal_weights_are_equal_files(tmp_path):
    about = {"format": "pt", "step": "s", "more": "x"}
    for name in "xyz":
        write_tensors(tmp_path / name, dict(sorted(TENSORS.items())), about)
        about = dict(reversed(about.items()))
    assert len({(tmp_path / name).read_bytes() for name in "xyz"}) == 1
    tensors, read = read_tensors(tmp_path / "x")
    assert read == about and all(tensors[name].equal(TENSORS[name]) for name in TENSORS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y", "z"]


LINES = [
    {"id": str(n), "image": f"{n}.jpg", "caption": f"a dog {n}", "questions": ["whose dog is it ?"]} for n in range(8)
]


INPUTS = {"image": {"type": "regions", "features": "regions.h5"}, "caption": {"type": "text"}}
STEPS = {
    "words": {"inputs": ["caption"], "train": ["backbone"]},
    "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "words"},
}
DATA = {"type": "table", "folder": ".", "files": dict.fromkeys(("train", "test"), "rows.jsonl"), "validation_split": ""}
RECIPE = toys.recipe(
    inputs=INPUTS, steps=STEPS, data={**DATA, **dict.fromkeys(("train_size", "val_size", "test_size"))}
)


def prepared(folder: Path) -> Path:
    folder.mkdir()
    (folder / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    (folder / "toy.toml").write_text(RECIPE)
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_step_alone_needs_no_features_that_it_does_not_read_and_changes_nothing(tmp_path, monkeypatch):
    full, parts = (prepared(tmp_path / name) for name in ("whole", "parts"))
    fill(full / "regions.h5", records=[record(line["id"], 3, seed=n) for n, line in enumerate(LINES)])
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
