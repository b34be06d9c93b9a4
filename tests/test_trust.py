"""What a stranger gives runs no code, takes no more memory than its size suggests, and leads to no other file."""

import contextlib
import gzip
import json
import os
import pickle
import re
import shutil
import struct
import zipfile
import zlib
from pathlib import Path
from textwrap import dedent

import h5py
import numpy as np
import pytest
import torch
from kit import archives, frcnn, published, small_runs, stores, toys
from kit.memory import check_memory, confined
from kit.refusals import refusal
from kit.thirdparty import AUDIO
from mmgen_data import Table
from mmgen_encoders import AnyEncoder, Bert
from mmgen_encoders.loading import read_pooler
from mmgen_extractors import BottomUpTsv, Detector, LxmertH5, NpzFolder, Roi, VisualGenome
from mmgen_inputs.pictures import ModernVBert
from mmgen_metrics import ClipScore
from mmgen_tasks import Refcoco
from mmgen_vision.lines import read_answers
from PIL import Image

import mmgen
from mmgen.errors import DataError, MmgenError, RecipeError
from mmgen.features.extract import extract
from mmgen.features.images import open_image
from mmgen.features.store import FeatureStore
from mmgen.reading.text import read_text
from mmgen.registry import forgotten_files, installed
from mmgen.storage.published_weights import read_published
from mmgen.storage.weights import read_tensors

pytestmark = pytest.mark.slow


def png(
    width: int, height: int, *chunks: tuple[bytes, bytes], depth: int = 8, color: int = 2, rows: bytes = bytes(100)
) -> bytes:
    """A PNG file that claims this size, and by default has almost no pixels. `chunks`: (name, body), before the
    pixels. `color`: the format's type of colour; 2 is RGB, 0 is grey."""
    blocks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)),
        *chunks,
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    packed = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in blocks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


SPARE = 300 << 20  # bytes of memory that a refusal may take
VAST = 10**12  # rows


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


NETWORKS = {
    "encoder": archives.bert,
    "seeing": archives.modernvbert,
    "detector": archives.yolos,
    "clip": archives.clip,
    "frcnn": frcnn.published,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A folder with networks as hubs have them, an export, and RefCOCO."""
    folder = published.refcoco(tmp_path_factory.mktemp("whole"))
    for name, make in NETWORKS.items():
        make(folder / name)
    mmgen.load(small_runs.drawn("writes")).save(folder / "export", extractor=False)
    return folder


@pytest.fixture
def place(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "place"))


def put(path: Path, content: bytes | dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json.dumps(content).encode() if isinstance(content, dict) else content)
    return path


def put_pickle(path: Path, bomb: Bomb) -> None:
    put(path, pickle.dumps(bomb))


def put_npy(path: Path, bomb: Bomb) -> None:
    np.save(put(path, b""), np.array([bomb], object))


def put_npz(path: Path, bomb: Bomb) -> None:
    np.savez(put(path, b""), x=np.array([bomb], object))


def put_tensors(path: Path, bomb: Bomb) -> None:
    torch.save({"bert.x": bomb, "y": torch.ones(2)}, path)


def imported(config, source: Path):
    if failure := extract(config.build(), source, source.parent / "made").failure:
        raise DataError(failure)


def ask(path: Path):
    return mmgen.load(path, device="cpu").ask({"picture": Image.new("RGB", (9, 9)), "caption": "a dog"})


DOORS = {  # a file -> what writes it with a bomb in it, what reads it
    "arrays/a.npy": (put_npy, lambda path: imported(NpzFolder(), path.parent)),
    "arrays/a.npz": (put_npz, lambda path: imported(NpzFolder(), path.parent)),
    "index.pkl": (put_pickle, lambda path: LxmertH5(index=path).build()),
    "refs(unc).p": (put_pickle, lambda path: Refcoco(folder=path.parent).build().split("train")),
    "visualbert.bin": (put_tensors, lambda path: read_published(str(path))),
    "vl-bert-base.model": (put_pickle, lambda path: read_published(str(path))),
    "network.safetensors": (put_pickle, lambda path: Roi(model="test_resnet", weights=str(path)).build()),
    "encoder/pytorch_model.bin": (put_pickle, lambda path: Bert(weights=str(path.parent)).build()),
    "seeing/pytorch_model.bin": (put_pickle, lambda path: ModernVBert(weights=str(path.parent)).build()),
    "detector/pytorch_model.bin": (put_pickle, lambda path: Detector(model=str(path.parent)).build()),
    "clip/pytorch_model.bin": (put_pickle, lambda path: ClipScore(model=str(path.parent)).build()),
    "frcnn/pytorch_model.bin": (put_tensors, lambda path: VisualGenome(weights=path.parent).build()),
    "answers.pkl": (put_pickle, read_answers),
    "export/steps/both/weights.safetensors": (put_pickle, lambda path: mmgen.load(path.parents[2])),
    "export/backbone/pytorch_model.bin": (put_pickle, lambda path: mmgen.load(path.parents[1])),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_pickle_is_opened(place, door):
    (plant, read), bomb = DOORS[door], Bomb(place / "mark")
    for weights in (place / "export" if door.startswith("export") else (place / door).parent).rglob("*.safetensors"):
        weights.unlink()
    plant(place / door, bomb)
    refusal(read, place / door)
    assert not bomb.mark.exists()
    pickle.loads(pickle.dumps(bomb))
    assert bomb.mark.exists()  # the bomb is one


CODE = {  # a folder -> what reads it
    "encoder": (
        lambda path: Bert(weights=str(path)).build(),
        lambda path: AnyEncoder(weights=str(path)).build(),
        lambda path: read_pooler(Bert(weights=str(path))),
    ),
    "seeing": (lambda path: ModernVBert(weights=str(path)).build(),),
    "detector": (lambda path: Detector(model=str(path)).build(), lambda path: Detector().load(path)),
    "clip": (lambda path: ClipScore(model=str(path)).build(),),
    "export/backbone": (lambda path: mmgen.load(path.parent), lambda path: Bert().build(folder=path)),
}
AUTO = [f"Auto{name}" for name in ("Config", "ImageProcessor", "Model", "ModelForMaskedLM", "ModelForObjectDetection")]


@pytest.mark.parametrize("changed", [{}, {"model_type": "evil"}, {"tokenizer_class": "Evil"}])
@pytest.mark.parametrize("name", CODE)
def test_no_code_of_a_folder_is_run(place, name, changed):
    put(place / name / "evil.py", f"open({str(place / 'mark')!r}, 'w')\nclass Evil: ...\n".encode())
    classes = dict.fromkeys(AUTO, "evil.Evil") | {"AutoTokenizer": ["evil.Evil"] * 2}
    for path in (place / name).glob("*config.json"):
        put(path, json.loads(path.read_text()) | {"auto_map": classes} | changed)
    for read in CODE[name]:
        try:
            read(place / name)
        except MmgenError as error:
            assert "\n" not in str(error)
    assert not (place / "mark").exists()


def test_a_photo_that_is_postscript_starts_no_program(place, monkeypatch):
    ghostscript = put(place / "bin/gs", f"#!/bin/sh\ntouch {place}/mark\n".encode())
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", str(ghostscript.parent), prepend=os.pathsep)
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # Pillow looks for it once
    photo = put(place / "a.jpg", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n")
    assert "expected one of BMP, GIF, JPEG, PNG, TIFF, WEBP" in refusal(open_image, photo)
    assert not (place / "mark").exists()
    with contextlib.suppress(OSError), Image.open(photo) as image:
        image.load()
    assert (place / "mark").exists()  # Pillow would have started it


@pytest.mark.parametrize("name", installed().names("extractor"))
def test_no_extractor_fetches_what_an_export_names(place, monkeypatch, name):
    def refuse(*arguments, **options):
        raise AssertionError(f"a network connection: {arguments}")

    for function in ("socket.socket.connect", "socket.create_connection", "socket.getaddrinfo"):
        monkeypatch.setattr(function, refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    fields = installed().get("extractor", name).config.model_fields
    for elsewhere in ("hf-hub:evil/network", "evil/network", "/etc/passwd"):
        values = {key: elsewhere for key in ("model", "weights", "index", "class_names") if key in fields}
        nested = {"detector": {"type": "detector", "model": elsewhere}} if "detector" in fields else {}
        (place / "export/extractor/image").mkdir(parents=True, exist_ok=True)
        change(place, image={"type": "regions", "width": 5, "extractor": {"type": name, **values, **nested}})
        assert str(place) in refusal(ask, place / "export")


def change(place: Path, file: str = "recipe.json", **values) -> Path:
    """Changes a settings file of an export; of the recipe, its inputs."""
    path = place / "export" / file
    settings = json.loads(path.read_text())
    put(path, settings | ({"inputs": settings["inputs"] | values} if file == "recipe.json" else values))
    return place / "export"


def npy(path: Path) -> Path:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({VAST}, 4), }}\n".encode()
    return put(path, b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(96)).parent


def tensors(path: Path) -> Path:
    header = json.dumps({"a": {"dtype": "F32", "shape": [VAST, 4], "data_offsets": [0, 16 * VAST]}}).encode()
    return put(path, struct.pack("<Q", len(header)) + header + bytes(96))


def repeated(path: Path) -> str:
    torch.save({"vast": torch.ones(1).expand(VAST)}, path)
    return str(path)


def deflated(path: Path) -> str:
    """A tensor of zeros, which torch would unpack."""
    torch.save({"a": torch.zeros(4)}, path)
    with zipfile.ZipFile(path) as plain:
        entries = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name, content in entries.items():
            with packed.open(name, "w") as file:
                file.writelines([bytes(1 << 20)] * 320 if "data/0" in name else [content])
    return str(path)


ZEROS, TEXT = gzip.compress(bytes(1 << 20)), b"x\0\0" + zlib.compress(bytes(16 << 20))
CLAIMS = {  # what claims a size, and reads it
    "npy": lambda place: imported(NpzFolder(), npy(place / "a/1.npy")),
    "safetensors": lambda place: read_tensors(tensors(place / "a.safetensors")),
    "torch": lambda place: read_published(repeated(place / "a.bin")),
    "torch's zip": lambda place: read_published(deflated(place / "a.bin")),
    "pickle's slot": lambda place: read_answers(put(place / "a.pkl", b"]r\xff\xff\xff\x7f.")),
    "png": lambda place: open_image(put(place / "a.png", png(100_000, 100_000))),
    "png's text": lambda place: open_image(put(place / "a.png", png(4, 4, (b"zTXt", TEXT)))),
    "gzip": lambda place: read_text(put(place / "a.json.gz", ZEROS * 400)),
    "tsv": lambda place: imported(BottomUpTsv(), put(place / "a.tsv.gz", gzip.compress(b"1\t") + ZEROS * 400)),
    "encoder": lambda place: mmgen.load(
        change(place, "backbone/config.json", hidden_size=10**6, num_attention_heads=1, vocab_size=10**6)
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_takes_no_memory(place, monkeypatch, claim):
    monkeypatch.setattr("mmgen.reading.text.MOST_BYTES", 64 << 20)
    monkeypatch.setattr("mmgen_extractors.tsv.LONGEST_LINE", 64 << 20)
    with confined(SPARE), pytest.raises(MmgenError) as error:
        CLAIMS[claim](place)
    assert str(place) in str(error.value)
    check_memory(error.value, place)


def packed(file, name: str) -> None:
    """Zeros of 2 GB in a file of 2 MB."""
    dataset = file.create_dataset(name, (1 << 28, 2), "f4", chunks=(1 << 28, 2), compression="gzip")
    dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(1 << 22)) * 600)


HDF5 = {  # a dataset that claims a size, is in another file, or anywhere in memory
    "rows": lambda file, name: file.create_dataset(name, (VAST, 4), "f4", chunks=True),
    "packed": packed,
    "external link": lambda file, name: file.__setitem__(name, h5py.ExternalLink("other.h5", f"/{name}")),
    "soft link": lambda file, name: file.__setitem__(name, h5py.SoftLink("/elsewhere")),
    "external storage": lambda file, name: file.create_dataset(name, (6, 4), "f4", external=[("/etc/passwd", 0, 96)]),
    "objects": lambda file, name: file.create_dataset(name, (2,), h5py.vlen_dtype(np.float32)),
}


@pytest.mark.parametrize("spoil", HDF5)
@pytest.mark.parametrize("name", ["features", "image_features"])
def test_hdf5_takes_no_memory_and_does_not_lead_out_of_its_file(tmp_path, monkeypatch, name, spoil):
    monkeypatch.setattr("mmgen.reading.text.MOST_BYTES", 64 << 20)  # of the index
    index = put(tmp_path / "index.json", b'["1", "2"]')
    path = stores.fill(tmp_path / "s", [stores.record("1"), stores.record("2")]).path / "part-00000.h5"
    with h5py.File(path, "a") as file:
        file.move("features", "elsewhere")
        HDF5[spoil](file, name)
    with confined(SPARE), pytest.raises(MmgenError) as error:
        FeatureStore(path) if name == "features" else imported(LxmertH5(index=index), path)
    assert re.match(f"{re.escape(str(path))}: .*'{name}' ", str(error.value))
    check_memory(error.value, path)


def test_names_do_not_lead_out_of_a_folder(place):
    put(place / "secret.png", png(4, 4))
    put(place / "data/images/other.png", png(4, 4))
    put(place / "data/train.jsonl", {"questions": ["why?"], "image": "../../secret.png"})
    data = Table(folder=place / "data", images="images", validation_split="", test_split="train").build()
    assert "no examples remain" in refusal(data.split, "train")
    put(place / "b/model.safetensors.index.json", {"weight_map": {"a": "../encoder/model.safetensors"}})
    assert "not a weights file of its folder" in refusal(read_published, str(place / "b"))
    recipe = json.loads((place / "export/recipe.json").read_text())
    for table in ({"steps": {"../x": recipe["steps"]["both"]}}, {"inputs": {"../x": {"type": "text"}}}):
        put(place / "export/recipe.json", recipe | table)
        with pytest.raises(RecipeError, match=r"recipe.json: (steps|inputs).../x: "):
            mmgen.load(place / "export")


REFUSING = (  # commands that read a recipe, a run or an export which names a plugin
    "show writes.toml",
    "data check writes.toml",
    "score good.jsonl --references writes.toml",
    "report writes",
    "info writes",
    "generate writes --caption x",
    "generate exported --caption x",
    "predict writes --caption x",
    "probe writes",
    "export exported other",
    "info exported",
    "serve exported --port 0",
    "judge make writes",
)


@pytest.fixture
def naming(tmp_path, monkeypatch) -> Path:
    """A recipe, its run and its export, which name a file that leaves a mark when it is executed."""
    monkeypatch.chdir(tmp_path)
    mmgen.load(shutil.copytree(small_runs.drawn("writes"), "writes")).save("exported", extractor=False)
    put(Path("writes.toml"), b'plugins = ["bomb.py"]\n' + small_runs.recipe_of("writes").read_bytes())
    put(Path("bomb.py"), dedent(AUDIO).encode() + b"\nfrom pathlib import Path\nPath('mark').touch()\n")
    put(Path("good.jsonl"), {"id": "1", "text": "a"})
    for folder in ("writes", "exported"):
        put(Path(folder, "recipe.json"), json.loads(Path(folder, "recipe.json").read_text()) | {"plugins": ["bomb.py"]})
    return tmp_path


def executes(folder: Path, *arguments: str) -> tuple[bool, str]:
    """Whether a command executes the file, and what it says."""
    with forgotten_files():
        done = toys.mmgen_here(folder, *arguments)
    mark = folder / "mark"
    executed = mark.exists()
    mark.unlink(missing_ok=True)
    return executed, done.stderr


def test_a_file_of_a_recipe_a_run_or_an_export_is_executed_only_if_it_is_named(naming):
    for command in REFUSING:
        executed, message = executes(naming, *command.split())
        assert not executed and re.search(r"needs the parts in bomb.py; if you trust.*--plugin \S*bomb.py", message), (
            command
        )
    for model in ("writes", "exported"):
        with pytest.raises(RecipeError, match="needs the parts in bomb.py"):
            mmgen.load(model)
        assert executes(naming, "info", model, "--plugin", "bomb.py") == (True, "")
    assert executes(naming, "compare", "writes")[0] is False
    assert executes(naming, "check", "writes.toml") == (True, "")
    assert executes(naming, "run", "writes.toml", "--step", "none")[0]
