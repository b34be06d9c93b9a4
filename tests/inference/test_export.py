"""Exports: the answers of the run, to the bit, from one folder; the content of the folder, and refusals."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from kit import small_runs, toys
from mmgen_regions import Roi
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

import mmgen
from mmgen.data.collate import Collator
from mmgen.errors import PluginError, RunError
from mmgen.inference.answers import Answer
from mmgen.inference.export import export
from mmgen.inference.load import load_run, open_model
from mmgen.inference.load_export import load_export
from mmgen.inference.predictor import Predictor
from mmgen.model import compose
from mmgen.recipe.load import load
from mmgen.registry import Registry, Source, installed
from mmgen.tensors import Example

STEPS = [
    ("writes", "words"),
    ("writes", "both"),
    *(("predicts", step) for step in ("answers", "choices", "expressions")),
]
DAMAGED = "of the two files is damaged; download or copy the complete folder again"
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
    return load_run(small_runs.drawn("writes"), "both")


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
    lists = {
        name: ["a red dog", "a cat"]
        for name in (*predictor.names.labels, *({*predictor.names.filled} & {*predictor.names.inputs}))
    }
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
def test_answers_as_the_run_does(tmp_path, photo, name, step):
    run = load_run(small_runs.drawn(name), step)
    model = mmgen.load(export(run, tmp_path / "export"), device=str(run.model.device))
    call = "ask" if run.kind == "text" else "predict"
    before, after = (getattr(predictor, call)(**query(run, photo)) for predictor in (run, model))
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
    text = both.ask(photo, caption="a red dog").texts[0]
    assert done.returncode == 0, done.stderr
    assert f"{text.score:6.2f}  {text.text}" in done.stdout


def test_files(exported):
    names = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
    assert names == {
        "config.json",
        "model.safetensors",
        "backbone/config.json",
        "backbone/model.safetensors",
        "backbone/tokenizer.json",
        "backbone/tokenizer_config.json",
        "extractor/image/network.safetensors",
    }
    config = json.loads((exported / "config.json").read_text())
    assert config["format_version"] == 1 and config["step"] == "both" and config["kind"] == "text"
    (version,) = (entry["version"] for name, entry in config["plugins"].items() if name == "mmgen-framework")
    assert version == mmgen.__version__


def test_every_weight_is_stored_once(exported, both):
    files = [load_file(path) for path in (exported / "model.safetensors", exported / "backbone" / "model.safetensors")]
    assert sum(tensor.numel() for file in files for tensor in file.values()) == sum(
        parameter.numel() for parameter in both.model.parameters()
    ) + sum(buffer.numel() for name, buffer in both.model.named_buffers() if name in both.model.state_dict())


@pytest.mark.parametrize("extra", [{}, {"extra_token_types": 2, "extra_positions": 3}])
def test_transformers_loads_the_backbone(tmp_path, extra):
    (tmp_path / "toy.toml").write_text(toys.recipe(backbone=extra))
    recipe = load(tmp_path / "toy.toml", installed())[0]
    model = compose(recipe.backbone, {"caption": recipe.inputs["caption"]}, recipe.generator, texts=["a red dog"] * 3)
    folder = export(Predictor(model, recipe, next(iter(recipe.steps))), tmp_path / "export")
    encoder, report = AutoModelForMaskedLM.from_pretrained(folder / "backbone", output_loading_info=True)
    assert not any(report.values())
    ids = torch.tensor([[2, 5, 6, 3]])
    assert torch.equal(encoder.eval()(ids).logits, model.backbone.model.eval()(ids).logits)
    loaded = mmgen.load(folder).model.state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in model.state_dict().items() if name in loaded)


def test_half_is_half_the_size_and_reads_as_float32(both, exported, tmp_path):
    folder = export(both, tmp_path / "half", half=True)
    sizes = [(place / "backbone" / "model.safetensors").stat().st_size for place in (folder, exported)]
    assert sizes[0] < 0.6 * sizes[1]
    model = mmgen.load(folder, device="cpu").model
    assert model.dtype == torch.float32
    rounded = both.model.state_dict()["embedders.image.projection.weight"].cpu().bfloat16().float()
    assert torch.equal(model.state_dict()["embedders.image.projection.weight"], rounded)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_computes_in_another_dtype(exported, both, photo, dtype):
    model = mmgen.load(exported, dtype=dtype, device="cpu")
    assert model.model.dtype == getattr(torch, dtype)
    before, after = (predictor.ask(photo, caption="a red dog").score for predictor in (both, model))
    assert after == pytest.approx(before, abs=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "xpu:99"}, "device 'xpu:99': not available on this machine; use \"cpu\", or leave it out"),
        ({"device": "cuda:99"}, "device 'cuda:99': not available on this machine; use \"cpu\", or leave it out"),
        ({"device": "meta"}, 'device \'meta\': must be "cpu", "cuda" or "cuda:N"'),
        ({"device": "gpu"}, 'device \'gpu\': must be "cpu", "cuda" or "cuda:N"'),
        ({"dtype": "float8_e4m3fn"}, 'dtype \'float8_e4m3fn\': must be "float32", "bfloat16" or "float16"'),
    ],
)
def test_devices_and_dtypes_that_cannot_compute(exported, options, message):
    with pytest.raises(mmgen.DataError) as error:
        mmgen.load(exported, **options)
    assert str(error.value) == message


def test_no_path_of_this_machine(both, exported, tmp_path):
    saved = (exported / "config.json").read_text()
    assert str(both.folder.path) not in saved and str(Path.home()) not in saved
    recipe = both.recipe
    image = recipe.inputs["image"]
    extractor = image.extractor.model_copy(update={"weights": "/data/network.safetensors"})
    backbone = recipe.backbone.model_copy(update={"weights": str(tmp_path)})
    moved = recipe.model_copy(
        update={
            "backbone": backbone,
            "inputs": {**recipe.inputs, "image": image.model_copy(update={"extractor": extractor})},
        }
    )
    folder = export(Predictor(both.model, moved, "both"), tmp_path / "export", extractor=False)
    config = json.loads((folder / "config.json").read_text())
    assert config["backbone"]["weights"] == "local" and config["inputs"]["image"]["extractor"] is None
    assert str(tmp_path) not in (folder / "config.json").read_text()


def test_without_an_extractor_pictures_are_refused(both, tmp_path, photo):
    folder = export(both, tmp_path / "export", extractor=False)
    assert not (folder / "extractor").exists()
    with pytest.raises(mmgen.UnavailableError) as error:
        mmgen.load(folder).ask(photo, caption="a dog")
    assert str(error.value).startswith(
        f"{folder}: 'image' was trained on features of roi, whose extractor is not known"
    )


def test_the_card_says_that_the_extractor_is_left_out(both, tmp_path):
    cards = [
        (both.save(tmp_path / str(included), extractor=included) / "README.md").read_text()
        for included in (True, False)
    ]
    line = (
        "Reads image and caption; gives texts. The network that computes the features of image is not included: the "
        "model reads stored features only, or pictures with --set inputs.image.extractor.type=NAME.\n"
    )
    assert [line in card for card in cards] == [False, True]
    assert all("has random weights" in card for card in cards)


def test_a_second_export_keeps_the_card(both, tmp_path):
    folder = export(both, tmp_path / "export", card=lambda _, config: f"# {config['step']}\n")
    assert (folder / "README.md").read_text() == "# both\n"
    (folder / "README.md").write_text("mine")
    export(both, folder, card=lambda *_: "# another\n")
    assert (folder / "README.md").read_text() == "mine"


def test_a_kill_while_an_export_is_replaced_loses_nothing(both, tmp_path, monkeypatch):
    """The process is killed when the old export has lost its name and the new one has not got it yet."""
    folder = export(both, tmp_path / "export", card=lambda *_: "# of mmgen\n")
    (folder / "README.md").write_text("# of the user\n")
    if not (child := os.fork()):
        replace = Path.replace
        monkeypatch.setattr(Path, "replace", lambda *paths: os._exit(9) if paths[1] == folder else replace(*paths))
        export(both, folder)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9 and not folder.exists()
    assert (tmp_path / ".export.spent.partial/README.md").read_text() == "# of the user\n"


def test_an_export_can_be_exported(exported, tmp_path):
    again = export(mmgen.load(exported, device="cpu"), tmp_path / "again")
    for name in (
        "model.safetensors",
        "backbone/model.safetensors",
        "extractor/image/network.safetensors",
        "config.json",
    ):
        assert (again / name).read_bytes() == (exported / name).read_bytes()


def test_a_second_export_keeps_what_others_added(both, tmp_path):
    folder = export(both, tmp_path / "export", card=lambda *_: "![](examples/1.jpg)")
    (folder / "examples").mkdir()
    for name in ("examples/1.jpg", "LICENSE", "extractor/old.txt"):
        (folder / name).write_text("mine")
    export(both, folder)
    assert (folder / "examples" / "1.jpg").read_text() == (folder / "LICENSE").read_text() == "mine"
    assert not (folder / "extractor" / "old.txt").exists()


def test_other_folders_are_not_replaced(both, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError) as error:
        export(both, tmp_path)
    assert str(error.value) == f"{tmp_path}: already exists and is not an export; choose another folder or delete it"
    assert (tmp_path / "thesis.txt").exists()


def test_a_newer_format(copy):
    change(copy, format_version=2)
    assert refused(copy) == "FOLDER/config.json: has format_version 2, but this mmgen reads up to 1; upgrade mmgen"


def test_a_plugin_that_is_not_installed(copy):
    config = json.loads((copy / "config.json").read_text())
    plugins = {**config["plugins"], "mmgen-lovely": {"version": "\n1.2", "parts": ["generator lovely"]}}
    change(copy, generator={"type": "lovely"}, plugins=plugins)
    assert refused(copy) == (
        "FOLDER/config.json: needs the generator 'lovely', which no installed plugin provides; the folder names "
        "mmgen-lovely 1.2 for it: install that only if you trust its source"
    )


def test_a_part_that_two_plugins_provide(copy):
    ours = installed()
    masked = ours.get("generator", "masked")
    registry = Registry((*ours.parts, replace(masked, source=Source("mine", "mmgen-mine", "0.3"))), ())
    with pytest.raises(PluginError) as error:
        load_export(copy, registry)
    assert str(error.value) == (
        f"{copy}/config.json: the generator 'masked' belongs to mmgen; the author must rename that of mmgen-mine 0.3 "
        f"({masked.place})"
    )


def test_sizes_are_checked_before_memory_is_taken(copy):
    config = json.loads((copy / "config.json").read_text())
    config["inputs"]["image"]["width"] = 10**6
    change(copy, inputs=config["inputs"])
    assert refused(copy) == (
        "FOLDER: embedders.image.deviation has shape (288,) in model.safetensors, but (1000000,) by config.json; one "
        f"{DAMAGED}"
    )


def test_a_missing_weight(copy):
    tensors = load_file(copy / "model.safetensors")
    tensors.pop("embedders.image.projection.bias")
    save_file(tensors, copy / "model.safetensors")
    assert refused(copy) == (
        "FOLDER: embedders.image.projection.bias is missing in model.safetensors, but expected by config.json; one "
        f"{DAMAGED}"
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "intermediate_size",
            7,
            "{weight}.0.intermediate.dense.bias has shape (64,) in model.safetensors, but (7,) by",
        ),
        ("num_hidden_layers", 9, "{weight}.1.attention.output.LayerNorm.bias is missing in model.safetensors, but "),
    ],
)
def test_a_config_of_the_encoder_that_does_not_fit_its_weights_is_named(copy, key, value, message):
    path = copy / "backbone" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, key: value}))
    assert refused(copy).startswith(f"FOLDER/backbone: {message.format(weight='backbone.model.bert.encoder.layer')}")


@pytest.mark.parametrize("error", [SafetensorError("I/O error: full (os error 28)"), Exception("full (os error 28)")])
def test_a_full_disk_is_a_line(both, tmp_path, monkeypatch, error):
    """safetensors and tokenizers raise classes of their own."""

    def fails(*_, **__):
        raise error

    monkeypatch.setattr("mmgen.inference.export.save_torch_state_dict", fails)
    with pytest.raises(mmgen.RunError) as raised:
        export(both, tmp_path / "export")
    assert str(raised.value).startswith(f"{tmp_path}/export: cannot be written: {error}; ")
    assert not any(tmp_path.iterdir())


def test_a_damaged_extractor(copy, photo):
    (copy / "extractor" / "image" / "network.safetensors").write_bytes(b"damaged")
    with pytest.raises(mmgen.DataError) as error:
        mmgen.load(copy).ask(photo, caption="a dog")
    assert str(error.value).startswith(f"{copy}/extractor/image/network.safetensors: damaged: ")


def test_a_missing_extractor(copy):
    shutil.rmtree(copy / "extractor")
    assert refused(copy) == "FOLDER/extractor/image: missing; download or copy the complete folder again"


def test_models_and_answers_show_themselves_in_a_notebook(exported, photo):
    model = mmgen.load(exported, device="cpu")
    assert repr(model) == f"<{exported}: step 'both', reads image and caption, gives text>"
    assert "<td>image and caption</td><td>text</td>" in model._repr_html_()
    answer = model.ask(photo, caption="a red dog", n=2)
    assert repr(answer) == f"<Answer to {answer.id!r}: {answer.value!r}>" and "\n" not in repr(answer)
    for text in answer.texts:
        assert f"<td>{text.text}</td><td>{text.score:.2f}</td>" in answer._repr_html_()
    assert answer._repr_html_().startswith('<img src="data:image/jpeg;base64,')
    assert model.ask(["absent.jpg"], caption="a dog")[0].pictures == ()
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert "<tr><td>inputs.caption</td><td>TextEmbedder</td><td>0</td></tr>" in model.model._repr_html_()
    failed = Answer("<i>", error="no & yes")
    assert repr(failed) == "<Answer to '<i>': no & yes>"
    assert "<caption>&lt;i&gt;</caption>" in failed._repr_html_() and "no &amp; yes" in failed._repr_html_()


def test_an_export_is_a_teacher(exported, both):
    """As `docs/plugins.md` says: a part loads an export, and encodes the batches of its own model with it."""
    student, teacher = both.model, mmgen.load(exported, device=str(both.model.device)).model.frozen_copy()
    batch = Collator(student, ("caption",), ())([Example("e", {"caption": "a red dog"}, ("a dog",))]).to(student.device)
    with torch.no_grad():
        assert torch.equal(teacher.encode(batch).first, student.encode(batch).first)
    assert not any(parameter.requires_grad for parameter in teacher.parameters())


def test_another_step(exported):
    with pytest.raises(RunError) as error:
        mmgen.load(exported, step="image")
    assert str(error.value) == f"{exported}: has no step 'image', because it is an export of step 'both'"


def test_an_extractor_of_the_command_line_takes_no_setting_of_the_folder(copy):
    config = json.loads((copy / "config.json").read_text())
    config["inputs"]["image"]["extractor"] = {"type": "roi", "model": "evil", "image_size": 64}
    change(copy, inputs=config["inputs"])
    model = open_model(copy, None, ["inputs.image.extractor.type=roi"])
    assert model.recipe.inputs["image"].extractor == Roi() and not model.features.extractors


def test_the_tokenizer_is_loaded_once(exported, monkeypatch):
    loaded, load_tokenizer = [], AutoTokenizer.from_pretrained
    monkeypatch.setattr(
        AutoTokenizer, "from_pretrained", lambda *a, **k: loaded.append(load_tokenizer(*a, **k)) or loaded[-1]
    )
    models = [mmgen.load(exported, device="cpu").model for _ in range(2)]
    assert [model.backbone.tokenizer for model in models] == loaded and loaded[0] is not loaded[1]
