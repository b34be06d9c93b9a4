"""Everything that a run lacks is listed at once: data, encoder, features, extractors, initial weights."""

import gzip
import socket
import ssl
import urllib.error
from email.message import Message

import pytest
from kit import toys
from PIL import Image

from mmgen.files import answers

pytestmark = pytest.mark.slow
IMAGE = {"type": "regions", "features": "nowhere.h5"}
STEPS = {
    "words": {"inputs": ["caption"], "train": ["backbone"]},
    "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "weights:gone.bin"},
}


@pytest.fixture(params=[True, False], ids=["offline", "unreachable"])
def offline(monkeypatch, tmp_path, request):
    """Offline by a setting, or because no server answers."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", request.param)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("torch.hub._hub_dir", str(tmp_path))
    answers.cache_clear()
    yield "HF_HUB_OFFLINE is set" if request.param else "the hub cannot be reached"
    answers.cache_clear()


def lines(folder, recipe: str, *arguments: str, command: tuple[str, ...] = ("run",)) -> list[str]:
    """What is wrong, by the keys that the lines are about."""
    (folder / "toy.toml").write_text(recipe)
    done = toys.mmgen_here(folder, *command, "toy.toml", *arguments)
    assert done.returncode == 1 and "Retrying" not in done.stderr
    return [line.strip() for line in done.stderr.partition("error: ")[2].splitlines()]


def place(recipe: str, text: str) -> str:
    return f"toy.toml:{recipe[: recipe.index(text)].count(chr(10)) + 1}"


@pytest.mark.parametrize("command", [("run",), ("data", "check")])
def test_one_list_has_data_encoder_features_and_weights(tmp_path, offline, command):
    data = {"type": "vqa", "folder": "none", "train_size": None, "val_size": None, "test_size": None}
    recipe = toys.recipe(
        backbone={"weights": "nobody/nothing"},
        inputs={"image": IMAGE, "caption": {"type": "text"}},
        steps={**STEPS, "more": {**STEPS["words"], "data": {"type": "jsonl", "folder": "other"}}},
        data=data,
    )
    found = lines(tmp_path, recipe, command=command)
    assert found[0] == "VQA 1.0: 6 files are missing:"
    assert "none/captions_val2014.json  <- annotations_trainval2014.zip (241 MB) of cocodataset.org/#download" in found
    assert any(line.startswith("steps.more.data: ") and "missing" in line for line in found)
    weights = next(line for line in found if "backbone.weights" in line)
    assert weights == (
        f"{place(recipe, 'weights = ')}: backbone.weights: 'nobody/nothing' is not on this machine, as a folder or "
        f"downloaded, and {offline}; it is at https://huggingface.co/nobody/nothing"
    )
    assert f"{place(recipe, 'features = ')}: inputs.image.features: nowhere.h5: no features; create them with `mm" in (
        "\n".join(found)
    )
    assert found[-1].startswith(f"{place(recipe, 'start = ')}: steps.both.start: 'gone.bin': no such file or folder")


def test_without_missing_data_the_rest_is_one_list_too(tmp_path, offline, monkeypatch):
    monkeypatch.setattr("mmgen.files.answers", lambda address: False)
    networks = {"type": "regions", "extractor": {"type": "roi", "weights": "pretrained", "model": "resnet18.a1_in1k"}}
    detected = {"type": "regions", "extractor": {"type": "detector", "model": "nobody/detector"}}
    frcnn = {"type": "regions", "extractor": {"type": "visual_genome", "weights": "vg"}, "fields": ["image"]}
    torchvision = {"type": "regions", "extractor": {"type": "faster_rcnn"}, "fields": ["image"]}
    published = {"type": "regions", "features": "x.tsv.gz", "fields": ["image"]}
    (tmp_path / "x.tsv.gz").write_bytes(gzip.compress(b"1\t9"))
    inputs = {"image": networks, "detected": {**detected, "fields": ["image"]}, "frcnn": frcnn, "last": torchvision}
    recipe = toys.recipe(
        backbone={"weights": "../none"},
        inputs={**inputs, "tsv": published},
        steps={"all": {"inputs": [*inputs, "tsv"], "train": ["backbone"]}},
    )
    found = lines(tmp_path, recipe)
    assert [line.split(": ")[1] for line in found] == [
        "backbone.weights",
        "inputs.image.extractor.weights",
        "inputs.detected.extractor.model",
        "inputs.frcnn.extractor.weights",
        "inputs.last.extractor.weights",
        "inputs.tsv.features",
    ]
    assert found[0].partition(": backbone.weights: ")[2].startswith("'../none': no such folder")
    assert found[1].endswith(f"and {offline}; it is at https://huggingface.co/timm/resnet18.a1_in1k (47 MB)")
    assert found[3].endswith(
        "vg/pytorch_model.bin: no such file; it is at https://huggingface.co/unc-nlp/frcnn-vg-finetuned (262 MB)"
    )
    assert "fasterrcnn_resnet50_fpn_v2_coco-dd69338a.pth (167 MB); put the file into " in found[4]
    assert found[5].endswith("published features are converted by `mmgen features import`")


def test_an_extraction_without_its_network_says_so_at_once(tmp_path, offline):
    Image.new("RGB", (40, 40)).save(tmp_path / "a.png")
    arguments = ("--type", "roi", "--set", "detector.type=detector", "--set", "detector.model=nobody/detector")
    done = toys.mmgen_here(tmp_path, "features", "extract", ".", "x.h5", *arguments)
    assert done.returncode == 1 and done.stderr.strip() == (
        "error: detector.model: 'nobody/detector' is not on this machine, as a folder or downloaded, and "
        f"{offline}; it is at https://huggingface.co/nobody/detector"
    )


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (urllib.error.HTTPError("http://x", 403, "", Message(), None), True),
        (urllib.error.URLError(ssl.SSLError("certificate of a proxy")), True),
        (urllib.error.URLError(socket.gaierror("no such name")), False),
        (TimeoutError("waited"), False),
    ],
)
def test_a_server_is_out_of_reach_only_if_nothing_answers(error, known, monkeypatch):
    def urlopen(*_, **__):
        raise error

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    assert answers.__wrapped__("http://x") is known


def test_what_the_steps_of_a_run_do_not_need_is_not_missed(tmp_path):
    (tmp_path / "toy.toml").write_text(
        toys.recipe(inputs={"image": IMAGE, "caption": {"type": "text"}}, steps=STEPS, metrics={})
    )
    done = toys.mmgen_here(tmp_path, "run", "toy.toml", "--step", "words")
    assert done.returncode == 0, done.stderr
    assert [line.split(": ")[1] for line in lines(tmp_path, (tmp_path / "toy.toml").read_text())] == [
        "inputs.image.features",
        "steps.both.start",
    ]
