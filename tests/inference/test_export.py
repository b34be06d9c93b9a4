"""Exports: the answers of the run, to the bit, from one folder that `load` reads; its files, its card, and refusals."""

import json
import pickle
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from kit import small_runs, toys
from kit.refusals import refusal
from PIL import Image
from transformers import AutoModelForMaskedLM

import mmgen
from mmgen.inference.answers import Answer
from mmgen.inference.predictor import Predictor
from mmgen.model import compose

OFFLINE = """
import socket
def refuse(*_, **__):
    raise AssertionError("a network connection")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from mmgen.cli import main
main()
"""


@pytest.fixture(scope="module")
def both():
    return mmgen.load(small_runs.drawn("writes"), "both")


@pytest.fixture(scope="module")
def exported(both, tmp_path_factory):
    return both.save(tmp_path_factory.mktemp("exports") / "both")


@pytest.fixture
def copy(exported, tmp_path):
    """A copy of an export that a test may damage."""
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.fixture(scope="module")
def photo():
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8))


@pytest.fixture
def query(photo):
    return {"image": photo, "caption": "a red dog"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step", "inputs"),
    [
        ("writes", "words", {"caption": "a red dog"}),
        ("writes", "both", {"caption": "a red dog", "image": None}),
        ("predicts", "answers", {"question": "a red dog", "image": None}),
        ("predicts", "choices", {"question": "a red dog", "choices": ["a red dog", "a cat"], "image": None}),
    ],
)
def test_answers_as_the_run_does(tmp_path, photo, name, step, inputs):
    run = mmgen.load(small_runs.drawn(name), step)
    model = mmgen.load(run.save(tmp_path / "export"), device=str(run.model.device))
    call = "ask" if run.kind == "text" else "predict"
    query = {name: value or photo for name, value in inputs.items()}
    before, after = (getattr(predictor, call)(query) for predictor in (run, model))
    assert (after.value, after.score) == (before.value, before.score)
    saved = model.model.state_dict()
    prefixes = ("backbone.model.", *(f"embedders.{name}." for name in run.names.inputs))
    assert all(saved[name].equal(t) for name, t in run.model.state_dict().items() if name.startswith(prefixes))


@pytest.mark.slow
def test_answers_offline_without_a_home(exported, both, photo, query, tmp_path):
    photo.save(tmp_path / "photo.png")
    environment = {"PATH": "/usr/bin", "HOME": str(tmp_path / "empty")}
    arguments = ["generate", str(exported), str(tmp_path / "photo.png"), "--input", "caption=a red dog"]
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    text = both.ask(query).texts[0]
    assert done.returncode == 0, done.stderr
    assert f"{text.score:6.2f}  {text.text}" in done.stdout


def test_files(exported):
    names = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
    assert names == {
        "README.md",
        "recipe.json",
        "inputs.json",
        "steps/both/weights.safetensors",
        "backbone/config.json",
        "backbone/tokenizer.json",
        "backbone/tokenizer_config.json",
        "extractor/image/network.safetensors",
    }
    recipe = json.loads((exported / "recipe.json").read_text())
    assert [*recipe["steps"]] == ["both"] and recipe["data"]["type"] == "none" and not recipe["metrics"]
    assert recipe["inputs"]["image"]["features"] is None


@pytest.mark.parametrize("extra", [{}, {"extra_token_types": 2, "extra_positions": 3}])
def test_transformers_loads_the_backbone(tmp_path, extra):
    recipe = toys.loaded(tmp_path, toys.recipe(backbone=extra))
    model = compose(recipe.backbone, {"caption": recipe.inputs["caption"]}, recipe.generator, texts=["a red dog"] * 3)
    folder = Predictor(model, recipe, next(iter(recipe.steps))).save(tmp_path / "export", transformers=True)
    encoder, report = AutoModelForMaskedLM.from_pretrained(folder / "backbone", output_loading_info=True)
    assert not any(report.values())
    ids = torch.tensor([[2, 5, 6, 3]])
    assert torch.equal(encoder.eval()(ids).logits, model.backbone.model.eval()(ids).logits)
    loaded = mmgen.load(folder).model.state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in model.state_dict().items() if name in loaded)


def test_half_is_half_the_size_reads_as_float32_and_leaves_the_live_model_alone(both, exported, tmp_path, query):
    """Other threads that ask the model meanwhile get the answers of the unrounded weights."""
    before = {name: tensor.clone() for name, tensor in both.model.state_dict().items()}
    saving = threading.Thread(target=lambda: both.save(tmp_path / "half", half=True))
    answers = [both.ask(query).texts]
    saving.start()
    while saving.is_alive():
        answers.append(both.ask(query).texts)
    saving.join()
    assert all(texts == answers[0] for texts in answers)
    assert all(torch.equal(tensor, before[name]) for name, tensor in both.model.state_dict().items())
    half, whole = (next(place.glob("steps/*/weights.safetensors")) for place in (tmp_path / "half", exported))
    assert half.stat().st_size < 0.6 * whole.stat().st_size
    model = mmgen.load(tmp_path / "half", device="cpu").model
    assert model.dtype == torch.float32
    rounded = before["embedders.image.projection.weight"].cpu().bfloat16().float()
    assert torch.equal(model.state_dict()["embedders.image.projection.weight"], rounded)
    cards = [(place / "README.md").read_text() for place in (tmp_path / "half", exported)]
    assert ["bfloat16" in card for card in cards] == [True, False]


def test_computes_in_another_dtype(exported, both, query):
    model = mmgen.load(exported, dtype="bfloat16", device="cpu")
    assert model.model.dtype == torch.bfloat16
    assert model.ask(query).score == pytest.approx(both.ask(query).score, abs=0.1)


def with_weights(both, tmp_path, backbone, **extractor):
    """The export of the model with other weights in its recipe."""
    image = both.recipe.inputs["image"]
    image = image.model_copy(update={"extractor": image.extractor.model_copy(update=extractor)})
    changes = {
        "backbone": both.recipe.backbone.model_copy(update={"weights": backbone}),
        "inputs": {**both.recipe.inputs, "image": image},
    }
    predictor = Predictor(both.model, both.recipe.model_copy(update=changes), "both")
    predictor.features = both.features
    return predictor.save(tmp_path / "export")


def test_no_path_of_this_machine(both, exported, tmp_path):
    for place in (str(both.folder.path), str(Path.home())):
        assert not any(place.encode() in file.read_bytes() for file in exported.rglob("*") if file.is_file())
    folder = with_weights(both, tmp_path, str(tmp_path), weights="/data/network.safetensors")
    recipe = json.loads((folder / "recipe.json").read_text())
    assert recipe["backbone"]["weights"] == recipe["inputs"]["image"]["extractor"]["weights"] == "local"
    assert "local" not in (folder / "README.md").read_text()


def test_without_an_extractor_pictures_are_refused(both, copy, tmp_path, query):
    folder = both.save(tmp_path / "export", extractor=False)
    assert not (folder / "extractor").exists()
    shutil.rmtree(copy / "extractor")  # was not copied
    for place in (folder, copy):
        with pytest.raises(mmgen.UnavailableError, match=f"^{place}: 'image' was trained on features of roi"):
            mmgen.load(place).ask(query)


def test_the_card(exported):
    card = (exported / "README.md").read_text()
    assert "model.ask({'image': 'image.jpg', 'caption': '...'})" in card and "| relevance " in card
    assert "On drawn scenes, split 'test':" in card and "- licence: made by this program; free of any" in card
    assert "- Step 'both': reads image and caption; trains image and backbone; starts from 'words'." in card
    assert "base_model" not in card and "the licences of these" not in card


def test_the_card_names_pretrained_weights_and_their_licence(both, tmp_path):
    folder = with_weights(both, tmp_path, "bert-base-uncased", model="resnet18", weights="pretrained")
    card = (folder / "README.md").read_text()
    assert "base_model:\n- bert-base-uncased\n- timm/resnet18.a1_in1k\n" in card
    assert "from those of bert-base-uncased and timm/resnet18.a1_in1k: the licences of these hold for it too" in card
    assert "not scored when it was exported" in card


def test_an_export_can_be_exported(exported, tmp_path):
    again = mmgen.load(exported, device="cpu").save(tmp_path / "again")
    for path in exported.rglob("*"):
        if path.is_file() and path.name != "README.md":
            assert (again / path.relative_to(exported)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        ("backbone/config.json", "hidden_size", 10**7, "config.json or the tokenizer is damaged (its weights need "),
        ("inputs.json", "image", {"width": 2**20}, "recipe.json: the settings describe a model that is far larger"),
    ],
)
def test_settings_that_do_not_fit_the_weights(copy, file, key, value, message):
    settings = json.loads((copy / file).read_text())
    (copy / file).write_text(json.dumps({**settings, key: value}))
    said = refusal(mmgen.load, copy)
    assert said.startswith(str(copy)) and message in said


def test_an_export_reads_no_file_outside_of_its_folder(copy):
    recipe = json.loads((copy / "recipe.json").read_text())
    recipe["inputs"]["image"]["features"] = "/etc/passwd"
    (copy / "recipe.json").write_text(json.dumps(recipe))
    assert mmgen.load(copy).recipe.inputs["image"].features is None


def test_answers_show_themselves_in_a_notebook(both, query):
    answer = both.ask(query, n=2)
    assert repr(answer) == f"<Answer to {answer.id!r}: {answer.value!r}>" and "\n" not in repr(answer)
    for text in answer.texts:
        assert f"<td>{text.text}</td><td>{text.score:.2f}</td>" in answer._repr_html_()
    assert answer._repr_html_().startswith('<img src="data:image/jpeg;base64,')
    assert pickle.loads(pickle.dumps(answer)) == answer
    failed = Answer("<i>", error="no & yes")
    assert "<caption>&lt;i&gt;</caption>" in failed._repr_html_() and "no &amp; yes" in failed._repr_html_()
