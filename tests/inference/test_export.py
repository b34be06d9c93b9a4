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
from mmgen.recipe.load import load
from mmgen.registry import installed

STEPS = [
    ("writes", "words"),
    ("writes", "both"),
    *(("predicts", step) for step in ("answers", "choices")),
]
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


def query(predictor, photo):
    """Values for every input and label of the predictor's step."""
    texts = {name: "a red dog" for name in predictor.names.required}
    lists = dict.fromkeys(predictor.names.labels, ["a red dog", "a cat"])
    return {**texts, **lists, **dict.fromkeys(predictor.names.pictures, photo)}


def change(folder, **changes):
    """Changes an export's recipe.json."""
    recipe = json.loads((folder / "recipe.json").read_text())
    (folder / "recipe.json").write_text(json.dumps(recipe | changes))


def weights_of(folder) -> Path:
    return next(folder.glob("steps/*/weights.safetensors"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), STEPS)
def test_answers_as_the_run_does(tmp_path, photo, name, step):
    run = mmgen.load(small_runs.drawn(name), step)
    model = mmgen.load(run.save(tmp_path / "export"), device=str(run.model.device))
    call = "ask" if run.kind == "text" else "predict"
    before, after = (getattr(predictor, call)(query(run, photo)) for predictor in (run, model))
    assert (after.value, after.score) == (before.value, before.score)
    assert all(
        torch.equal(after, before) for after, before in zip(*(weights(source) for source in (model, run)), strict=True)
    )


def weights(predictor):
    prefixes = ("backbone.model.", *(f"embedders.{name}." for name in predictor.names.inputs))
    return [tensor for name, tensor in predictor.model.state_dict().items() if name.startswith(prefixes)]


@pytest.mark.slow
def test_answers_offline_without_a_home(exported, both, photo, tmp_path):
    photo.save(tmp_path / "photo.png")
    environment = {"PATH": "/usr/bin", "HOME": str(tmp_path / "empty")}
    arguments = ["generate", str(exported), str(tmp_path / "photo.png"), "--input", "caption=a red dog"]
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    text = both.ask({"image": photo, "caption": "a red dog"}).texts[0]
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
    (tmp_path / "toy.toml").write_text(toys.recipe(backbone=extra))
    recipe = load(tmp_path / "toy.toml", installed())[0]
    model = compose(recipe.backbone, {"caption": recipe.inputs["caption"]}, recipe.generator, texts=["a red dog"] * 3)
    folder = Predictor(model, recipe, next(iter(recipe.steps))).save(tmp_path / "export", transformers=True)
    encoder, report = AutoModelForMaskedLM.from_pretrained(folder / "backbone", output_loading_info=True)
    assert not any(report.values())
    ids = torch.tensor([[2, 5, 6, 3]])
    assert torch.equal(encoder.eval()(ids).logits, model.backbone.model.eval()(ids).logits)
    loaded = mmgen.load(folder).model.state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in model.state_dict().items() if name in loaded)


def test_half_is_half_the_size_reads_as_float32_and_leaves_the_live_model_alone(both, exported, tmp_path, photo):
    """Other threads that ask the model meanwhile get the answers of the unrounded weights."""
    before = {name: tensor.clone() for name, tensor in both.model.state_dict().items()}
    versions = [parameter._version for parameter in both.model.parameters()]
    saving = threading.Thread(target=lambda: both.save(tmp_path / "half", half=True))
    expected = both.ask({"image": photo, "caption": "a red dog"}).texts
    saving.start()
    answers = [both.ask({"image": photo, "caption": "a red dog"}).texts]
    while saving.is_alive():
        answers.append(both.ask({"image": photo, "caption": "a red dog"}).texts)
    saving.join()
    assert all(texts == expected for texts in answers)
    assert [parameter._version for parameter in both.model.parameters()] == versions
    assert all(torch.equal(tensor, before[name]) for name, tensor in both.model.state_dict().items())
    sizes = [weights_of(place).stat().st_size for place in (tmp_path / "half", exported)]
    assert sizes[0] < 0.6 * sizes[1]
    model = mmgen.load(tmp_path / "half", device="cpu").model
    assert model.dtype == torch.float32
    rounded = before["embedders.image.projection.weight"].cpu().bfloat16().float()
    assert torch.equal(model.state_dict()["embedders.image.projection.weight"], rounded)
    assert "bfloat16" in (tmp_path / "half/README.md").read_text()
    assert "bfloat16" not in (exported / "README.md").read_text()


def test_computes_in_another_dtype(exported, both, photo):
    model = mmgen.load(exported, dtype="bfloat16", device="cpu")
    assert model.model.dtype == torch.bfloat16
    before, after = (predictor.ask({"image": photo, "caption": "a red dog"}).score for predictor in (both, model))
    assert after == pytest.approx(before, abs=0.1)


def test_no_path_of_this_machine(both, exported, tmp_path):
    for place in (str(both.folder.path), str(Path.home())):
        assert not any(place.encode() in file.read_bytes() for file in exported.rglob("*") if file.is_file())
    image = both.recipe.inputs["image"]
    extractor = image.extractor.model_copy(update={"weights": "/data/network.safetensors"})
    backbone = both.recipe.backbone.model_copy(update={"weights": str(tmp_path)})
    inputs = {**both.recipe.inputs, "image": image.model_copy(update={"extractor": extractor})}
    moved = both.recipe.model_copy(update={"backbone": backbone, "inputs": inputs})
    predictor = Predictor(both.model, moved, "both")
    predictor.features = both.features
    folder = predictor.save(tmp_path / "export")
    recipe = json.loads((folder / "recipe.json").read_text())
    assert recipe["backbone"]["weights"] == recipe["inputs"]["image"]["extractor"]["weights"] == "local"
    assert "local" not in (folder / "README.md").read_text()


def test_without_an_extractor_pictures_are_refused(both, copy, tmp_path, photo):
    folder = both.save(tmp_path / "export", extractor=False)
    assert not (folder / "extractor").exists()
    shutil.rmtree(copy / "extractor")  # was not copied
    for place in (folder, copy):
        with pytest.raises(mmgen.UnavailableError) as error:
            mmgen.load(place).ask({"image": photo, "caption": "a dog"})
        assert str(error.value).startswith(f"{place}: 'image' was trained on features of roi")


def test_the_card(exported):
    card = (exported / "README.md").read_text()
    assert "model.ask({'image': 'image.jpg', 'caption': '...'})" in card and "| relevance " in card
    assert "On drawn scenes, split 'test':" in card and "- licence: made by this program; free of any" in card
    assert "- Step 'both': reads image and caption; trains image and backbone; starts from 'words'." in card
    assert "base_model" not in card and "the licences of these" not in card


def test_the_card_names_pretrained_weights_and_their_licence(both, tmp_path):
    backbone = both.recipe.backbone.model_copy(update={"weights": "bert-base-uncased"})
    image = both.recipe.inputs["image"]
    extractor = image.extractor.model_copy(update={"model": "resnet18", "weights": "pretrained"})
    inputs = {**both.recipe.inputs, "image": image.model_copy(update={"extractor": extractor})}
    predictor = Predictor(both.model, both.recipe.model_copy(update={"backbone": backbone, "inputs": inputs}), "both")
    predictor.features = both.features
    card = (predictor.save(tmp_path / "export") / "README.md").read_text()
    assert "base_model:\n- bert-base-uncased\n- timm/resnet18.a1_in1k\n" in card
    assert "from those of bert-base-uncased and timm/resnet18.a1_in1k: the licences of these hold for it too" in card
    assert "not scored when it was exported" in card


def test_an_export_can_be_exported(exported, tmp_path):
    again = mmgen.load(exported, device="cpu").save(tmp_path / "again")
    for path in exported.rglob("*"):
        if path.is_file() and path.name != "README.md":
            assert (again / path.relative_to(exported)).read_bytes() == path.read_bytes()


def test_a_folder_that_is_there_is_not_replaced(both, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert refusal(both.save, tmp_path) == f"{tmp_path}: already exists; choose another folder or delete it"
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        ("backbone/config.json", "intermediate_size", 7, "intermediate.dense.bias: shape (64,) in the file, (7,) in"),
        ("backbone/config.json", "hidden_size", 10**7, "config.json: "),
        ("inputs.json", "image", {"width": 2**20}, "recipe.json: the settings describe a model that is far larger"),
        ("inputs.json", "image", 3, "inputs.json: damaged: 'image' is 3"),
    ],
)
def test_settings_that_do_not_fit_the_weights(copy, file, key, value, message):
    settings = json.loads((copy / file).read_text())
    (copy / file).write_text(json.dumps({**settings, key: value}))
    said = refusal(mmgen.load, copy)
    assert said.startswith(str(copy)) and message in said


def test_an_export_reads_no_file_outside_of_its_folder(copy, tmp_path):
    recipe = json.loads((copy / "recipe.json").read_text())
    recipe["inputs"]["image"]["features"] = "/etc/passwd"
    change(copy, inputs=recipe["inputs"])
    assert mmgen.load(copy).recipe.inputs["image"].features is None


def test_models_and_answers_show_themselves_in_a_notebook(exported, photo):
    model = mmgen.load(exported, device="cpu")
    assert repr(model) == f"<{exported}: step 'both', reads image and caption, gives text>"
    answer = model.ask({"image": photo, "caption": "a red dog"}, n=2)
    assert repr(answer) == f"<Answer to {answer.id!r}: {answer.value!r}>" and "\n" not in repr(answer)
    for text in answer.texts:
        assert f"<td>{text.text}</td><td>{text.score:.2f}</td>" in answer._repr_html_()
    assert answer._repr_html_().startswith('<img src="data:image/jpeg;base64,')
    assert model.ask_all([{"image": "absent.jpg", "caption": "a dog"}])[0].pictures == ()
    assert pickle.loads(pickle.dumps(answer)) == answer
    failed = Answer("<i>", error="no & yes")
    assert repr(failed) == "<Answer to '<i>': no & yes>"
    assert "<caption>&lt;i&gt;</caption>" in failed._repr_html_() and "no &amp; yes" in failed._repr_html_()
