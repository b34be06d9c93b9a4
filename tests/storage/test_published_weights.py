"""Published weights: the files of a path, and the tensors that are read."""

import json

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file

from mmgen.errors import DataError, UnavailableError
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
    sharded_weights = read_published(str(sharded(tmp_path / "shards")))
    assert same(sharded_weights)
    assert same(read_published(str(tmp_path / "shards/model.safetensors.index.json")))


def test_what_is_looked_at_is_taken_and_a_look_at_names_takes_nothing(tmp_path):
    save_file(TENSORS, tmp_path / "a.safetensors")
    weights = read_published(str(tmp_path / "a.safetensors"))
    assert "bert.a" in weights and [*weights] and len(weights) == 2 and weights.left_over == ["bert.a", "cls.b"]
    assert weights.get("bert.x") is None and torch.equal(weights["cls.b"], TENSORS["cls.b"])
    assert weights.left_over == ["bert.a"]


ODD = {  # ways to keep a tensor of which nobody can read the numbers one by one
    "sparse_coo": lambda tensor: tensor.to_sparse(),
    "qint8": lambda tensor: torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8),
    "meta": lambda tensor: tensor.to("meta"),
}


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:Sparse")
@pytest.mark.parametrize("kind", ODD)
def test_what_holds_no_plain_numbers_is_refused(tmp_path, kind):
    change = ODD[kind]
    torch.save(TENSORS | {"bert.a": change(TENSORS["bert.a"])}, tmp_path / "a.bin")
    with pytest.raises(DataError, match="'bert.a' is sparse, quantised or without data"):
        read_published(str(tmp_path / "a.bin"))


def test_a_hub_name_is_fetched_and_offline_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UnavailableError, match="some/bert: cannot be downloaded: .*; check the name, the con") as error:
        read_published("some/bert")
    assert "\n" not in str(error.value)
    cache = tmp_path / "models--some--bert"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs/main").write_text("0" * 40)
    (cache / "snapshots").mkdir()
    sharded(cache / "snapshots" / ("0" * 40))
    assert same(read_published("some/bert"))
