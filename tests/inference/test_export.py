"""Exports: what the run answers, to the bit, from one folder; what is in the folder, and what is refused."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from kit import toys
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM

import mmgen
from mmgen.errors import PluginError, RunError
from mmgen.inference.export import export
from mmgen.inference.load import load_run
from mmgen.inference.predictor import Predictor
from mmgen.model import compose
from mmgen.recipe.load import load
from mmgen.registry import installed

STORED = Path(__file__).resolve().parents[1] / "kept_runs"
STEPS = [("writes", "words"), ("writes", "both"), *(("predicts", step) for step in ("answers", "choices", "expressions"))]
OFFLINE = """
import socket
def refuse(*_, **__):
    raise AssertionError("a network connection")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from mmgen.cli import main
main()
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The finished runs, where they may be written to."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("writes", "predicts"):
        shutil.copytree(STORED / name, folder / name / "default")
    return folder


@pytest.fixture(scope="module")
def both(stored):
    return load_run(stored / "writes" / "default" / "seed-0", "both")


@pytest.fixture(scope="module")
def exported(both, tmp_path_factory):
    return export(both, tmp_path_factory.mktemp("exports") / "both")


@pytest.fixture
def copy(exported, tmp_path):
    """A copy of an export that a test may damage."""
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.fixture(scope="module")
def photo():
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8))


def query(predictor, photo):
    """Values for every input and label of the predictor's step."""
    texts = {name: "a red dog" for name in predictor.names.required}
    lists = {name: ["a red dog", "a cat"] for name in (*predictor.names.labels, *predictor.names.filled)}
    return {**texts, **lists, **dict.fromkeys(predictor.names.pictures, photo)}


def change(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def refused(folder) -> str:
    with pytest.raises((RunError, PluginError)) as error:
        mmgen.load(folder)
    return str(error.value).replace(str(folder), "FOLDER")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), STEPS)
def test_answers_as_the_run_does(stored, tmp_path, photo, name, step):
    run = load_run(stored / name / "default" / "seed-0", step)
    model = mmgen.load(export(run, tmp_path / "export"), device=str(run.model.device))
    call = "ask" if run.kind == "text" else "predict"
    before, after = (getattr(predictor, call)(**query(run, photo)) for predictor in (run, model))
    assert (after.value, after.score) == (before.value, before.score)
    assert all(torch.equal(after, before) for after, before in zip(*(weights(each) for each in (model, run)), strict=True))


def weights(predictor):
    prefixes = ("backbone.model.", *(f"embedders.{name}." for name in predictor.names.inputs))
    return [tensor for name, tensor in predictor.model.state_dict().items() if name.startswith(prefixes)]
