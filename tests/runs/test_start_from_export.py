"""Steps that start from an export: what is loaded, what is listed, and what is refused."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from kit import small_runs, toys
from kit.refusals import refusal
from kit.training import RecordedProgress

import mmgen
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run
from mmgen.storage.weights import read_tensors

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]  # every test trains

ROI = {"type": "regions", "max_regions": 4, "extractor": toys.ROI}


def recipe(start="captions", image=ROI, **changes) -> str:
    """The paper's steps over an exported model: pictures, then both."""
    tables = {
        "backbone": {"weights": f"{start}/backbone"},
        "inputs": {"image": image, "caption": {"type": "text"}},
        "steps": {
            "image": {"inputs": ["image"], "train": ["image"], "start": f"export:{start}"},
            "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "image"},
        },
        "data": {"train_size": 8, "val_size": 2, "test_size": 2},
    }
    return toys.recipe(**{**tables, **changes})


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """The exports of a step that reads captions and of one that reads pictures too."""
    folder = tmp_path_factory.mktemp("exports")
    mmgen.load(small_runs.drawn("writes"), "words").save(folder / "captions", transformers=True)
    mmgen.load(small_runs.drawn("writes"), "both").save(folder / "both", transformers=True)
    return folder


@pytest.fixture
def place(exports, tmp_path, monkeypatch):
    for name in ("captions", "both"):
        shutil.copytree(exports / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def finished(text: str):
    """The folder of a run, and what it says."""
    Path("toy.toml").write_text(text)
    loaded, layers = load(Path("toy.toml"), installed())
    said = RecordedProgress()
    return run(loaded, layers=layers, progress=said), "\n".join(said.lines)


def test_the_papers_steps_over_an_exported_caption_model(place):
    folder, said = finished(recipe())
    (line,) = re.findall("image: export:captions: .*", said)
    built = "; as built 2 (embedders.image.projection.weight, embedders.image.projection.bias)"
    assert line.endswith(built) and "left over" not in line
    exported = mmgen.load("captions", device="cpu").model.state_dict()
    trained = read_tensors(folder.step("image") / "weights.safetensors")[0]  # trains W only
    names = [name for name in exported if name.startswith("backbone.") and name in trained]
    assert names and all(torch.equal(trained[name], exported[name]) for name in names)
    shutil.rmtree("captions")
    assert finished(recipe())[0].path == folder.path  # a finished run needs no export


def test_what_does_not_fit_is_listed(place):
    _, said = finished(recipe("both", {**ROI, "extractor": {**toys.ROI, "pool": 2}}))
    for what in ("left over", "as built"):
        (names,) = re.findall(rf"; {what} \d+ \(([^)]*)\)", said)
        assert "embedders.image.projection.weight" in names
        assert all(name.startswith("embedders.image.") for name in names.split(", "))


def test_another_tokenizer_is_refused(place):
    text = recipe(backbone={"hidden_size": 16})
    line = text.splitlines().index('start = "export:captions"') + 1
    assert refusal(finished, text) == (
        f"toy.toml:{line}: steps.image.start: 'export:captions': its tokenizer differs from that of the recipe's "
        'backbone; export it with --transformers, and set backbone.weights = "captions/backbone"'
    )
