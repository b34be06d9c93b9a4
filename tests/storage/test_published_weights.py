"""Published weights: the files of a path, the tensors that are read, and that no untrusted code runs."""

import hashlib
import json
import pickle
import zipfile

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file

from mmgen.errors import DataError
from mmgen.storage.published_weights import read_published

TENSORS = {"bert.a": torch.arange(6.0).reshape(2, 3), "cls.b": torch.ones(4)}


def same(weights) -> bool:
    """Whether exactly these tensors are present, with these names."""
    return weights.keys() == TENSORS.keys() and all(torch.equal(weights[name], TENSORS[name]) for name in TENSORS)


def sharded(folder, first="model-1-of-2.safetensors"):
    folder.mkdir()
    save_file({"bert.a": TENSORS["bert.a"]}, folder / "model-1-of-2.safetensors")
    save_file({"cls.b": TENSORS["cls.b"]}, folder / "model-2-of-2.safetensors")
    index = {"metadata": {}, "weight_map": {"bert.a": first, "cls.b": "model-2-of-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_files_of_every_kind_give_the_same(tmp_path):
    save_file(TENSORS, tmp_path / "a.safetensors")
    torch.save(TENSORS, tmp_path / "a.bin")
    torch.save(TENSORS, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    moments = {"exp_avg": torch.zeros(2)}
    torch.save(
        {"epoch": 3, "state_dict": {f"module.{k}": v for k, v in TENSORS.items()}, "optimizer": moments},
        tmp_path / "vl-bert.model",
    )
    for name in ("a.safetensors", "a.bin", "old.pt", "vl-bert.model"):
        weights = read_published(str(tmp_path / name))
        assert same(weights), name
        assert weights.files == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}
    sharded_weights = read_published(str(sharded(tmp_path / "shards")))
    assert same(sharded_weights) and len(sharded_weights.files) == 2
    assert same(read_published(str(tmp_path / "shards/model.safetensors.index.json")))


def test_what_is_looked_at_is_taken_and_a_look_at_names_takes_nothing(tmp_path):
    save_file(TENSORS, tmp_path / "a.safetensors")
    weights = read_published(str(tmp_path / "a.safetensors"))
    assert "bert.a" in weights and [*weights] and len(weights) == 2 and weights.left_over == ["bert.a", "cls.b"]
    assert weights.get("bert.x") is None and weights.name_of(weights["cls.b"]) == "cls.b"
    assert weights.left_over == ["bert.a"] and weights.name_of(torch.ones(4)) is None


class Evil:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_pickle_runs_nothing(tmp_path):
    torch.save({"x": Evil(tmp_path / "ran"), **TENSORS}, tmp_path / "evil.bin")
    (tmp_path / "plain.bin").write_bytes(pickle.dumps({"bert.a": Evil(tmp_path / "ran")}))
    for name in ("evil.bin", "plain.bin"):
        with pytest.raises(
            DataError, match=rf"{name}: damaged, or not a weights file: contains pickled objects other than tensors"
        ) as error:
            read_published(str(tmp_path / name))
        assert "\n" not in str(error.value) and not (tmp_path / "ran").exists()


def test_one_number_does_not_stand_for_a_table(tmp_path):
    torch.save(TENSORS | {"vast": torch.ones(1).expand(1 << 40)}, tmp_path / "vast.model")
    with pytest.raises(DataError, match=r"vast.model: damaged: 'vast' has shape \(1099511627776,\) but"):
        read_published(str(tmp_path / "vast.model"))


ODD = {  # ways to keep a tensor of which nobody can read the numbers one by one
    "sparse_coo": (lambda tensor: tensor.to_sparse(), "is sparse (sparse_coo)"),
    "sparse_csr": (lambda tensor: tensor.to_sparse_csr(), "is sparse (sparse_csr)"),
    "qint8": (lambda tensor: torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8), "is quantised (qint8)"),
    "meta": (lambda tensor: tensor.to("meta"), "is without data (device 'meta')"),
}


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:Sparse")
@pytest.mark.parametrize("kind", ODD)
def test_what_holds_no_plain_numbers_is_left_over_or_named(tmp_path, kind):
    change, reason = ODD[kind]
    torch.save(TENSORS | {"bert.a": change(TENSORS["bert.a"])}, tmp_path / "a.bin")
    weights = read_published(str(tmp_path / "a.bin"))
    assert torch.equal(weights["cls.b"], TENSORS["cls.b"]) and len(weights) == 2 and weights.left_over == ["bert.a"]
    with pytest.raises(DataError) as error:
        weights["bert.a"]
    assert str(error.value) == (
        f"'{tmp_path / 'a.bin'}': 'bert.a' {reason}; use weights saved as dense, unquantised tensors"
    )


def test_a_small_file_does_not_unpack_to_a_large_one(tmp_path):
    torch.save({"a": torch.zeros(1 << 20)}, tmp_path / "a.bin")
    with zipfile.ZipFile(tmp_path / "a.bin") as plain, zipfile.ZipFile(tmp_path / "b.bin", "w", 8) as packed:
        for entry in plain.infolist():
            packed.writestr(entry.filename, plain.read(entry))
    with pytest.raises(DataError, match="claims 4,19[0-9],[0-9]+ bytes, more than the size of the file"):
        read_published(str(tmp_path / "b.bin"))


def test_a_turned_bit_of_a_torch_file_is_noticed(tmp_path):
    torch.save(TENSORS, tmp_path / "a.bin")
    content = bytearray((tmp_path / "a.bin").read_bytes())
    content[content.index(TENSORS["cls.b"].numpy().tobytes()) + 3] ^= 1
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_published(str(tmp_path / "a.bin"))
    assert str(error.value) == (
        f"{tmp_path / 'a.bin'}: damaged: checksum mismatch in 'a/data/1'; download the file again"
    )


def test_bytes_before_a_torch_file_are_refused(tmp_path):
    """zipfile looks for the entries behind them, and torch in them: checksums would be of other values."""
    torch.save(TENSORS, tmp_path / "a.bin")
    content = (tmp_path / "a.bin").read_bytes()
    damaged = bytearray(content)
    damaged[content.index(TENSORS["cls.b"].numpy().tobytes()) + 3] ^= 1
    (tmp_path / "a.bin").write_bytes(damaged + content)
    with pytest.raises(DataError) as error:
        read_published(str(tmp_path / "a.bin"))
    message = "damaged: other bytes stand before the archive; download the file again"
    assert str(error.value) == f"{tmp_path / 'a.bin'}: {message}"


def test_an_entry_of_a_torch_file_that_is_marked_as_a_folder_is_refused(tmp_path):
    """torch would read none of its bytes, and zipfile all."""
    torch.save(TENSORS, tmp_path / "a.bin")
    content = bytearray((tmp_path / "a.bin").read_bytes())
    content[content.rindex(b"a/data/1") - 8] |= 0x10  # the attributes, before the offset in the archive
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_published(str(tmp_path / "a.bin"))
    message = "damaged: 'a/data/1' is marked as a folder; download the file again"
    assert str(error.value) == f"{tmp_path / 'a.bin'}: {message}"


@pytest.mark.parametrize(
    "name, content, reason",
    [
        ("a.bin", b"", "a.bin: damaged, or not a weights file"),
        ("a.bin", b"PK\x03\x04 and so on", "a.bin: is a zip archive; unpack it first"),
        ("a.safetensors", b"\xff" * 40, "a.safetensors: damaged"),
        ("a.txt", b"words", "not a weights file by its name; give a file"),
        ("model.safetensors.index.json", b"{", "index.json: damaged"),
        ("model.safetensors.index.json", b'{"weight_map": {}}', "lists no files of its folder"),
        ("model.safetensors.index.json", b'{"weight_map": {"a": "../b.safetensors"}}', "lists no files of its folder"),
        ("model.safetensors.index.json", b'{"weight_map": {"a": ["b"]}}', "lists no files of its folder"),
        ("model.safetensors.index.json", b'{"weight_map": {"a": "b.exe"}}', "lists b.exe, which is not a weights file"),
        (
            "model.safetensors.index.json",
            b'{"weight_map": {"a": "b.bin"}}',
            "lists b.bin, which is not in the same folder",
        ),
    ],
)
def test_damage_is_one_line(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        read_published(str(tmp_path / name))
    assert reason in str(error.value) and str(tmp_path) in str(error.value) and "\n" not in str(error.value)


def test_what_is_no_weights_is_one_line(tmp_path):
    torch.save([1, 2], tmp_path / "list.bin")
    torch.save({"step": 3}, tmp_path / "numbers.bin")
    torch.save({"a\nb": torch.ones(1)}, tmp_path / "lines.pt")
    torch.save({"a." * 300: torch.ones(1)}, tmp_path / "long.pt")
    torch.save(TENSORS, tmp_path / "a.bin")
    (tmp_path / "a.bin").write_bytes((tmp_path / "a.bin").read_bytes()[:-300])
    (tmp_path / "none").mkdir()
    for name, reason in [
        ("list.bin", "contains no named tensors"),
        ("numbers.bin", "contains no named tensors"),
        ("lines.pt", r"damaged: invalid tensor name 'a\nb'; download"),
        ("long.pt", "damaged: invalid tensor name 'a.a.a.a.a.a.a.a.a."),
        ("a.bin", "damaged, or not a weights file"),
        ("none", "the folder has no weights file"),
        ("gone.bin", "no such file or folder"),
        ("", r"the folder has several weights files (a.bin, lines.pt)"),
    ]:
        with pytest.raises(DataError) as error:
            read_published(str(tmp_path / name))
        assert reason in str(error.value) and "\n" not in str(error.value), name


def test_a_hub_name_is_fetched_and_offline_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(DataError, match=r"'some/bert' cannot be loaded \(.*a hub name and a connection") as error:
        read_published("some/bert")
    assert "\n" not in str(error.value)
    cache = tmp_path / "models--some--bert"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs/main").write_text("0" * 40)
    (cache / "snapshots").mkdir()
    sharded(cache / "snapshots" / ("0" * 40))
    assert same(read_published("some/bert"))
