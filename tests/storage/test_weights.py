"""Weights that do not fit a model are reported in one line, with the remedy."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from mmgen.errors import RunError
from mmgen.storage.weights import load_state, read_tensors, write_tensors


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            {"0.weight": torch.ones(2, 2), "1.bias": torch.ones(2)},
            "2 tensors differ, such as 0.weight: shape (2, 2) in",
        ),
        (
            {"1.weight": torch.ones(2, 3), "1.bias": torch.ones(2)},
            "1 tensors differ, such as 1.weight: shape (2, 3) in",
        ),
    ],
)
def test_weights_of_another_model(tensors, message):
    with pytest.raises(RunError) as error:
        load_state(nn.Sequential(nn.GELU(), nn.Linear(2, 2)), tensors, "weights.safetensors")
    assert str(error.value).startswith("weights.safetensors: ") and message in str(error.value)


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


def test_a_file_that_others_wrote_is_read(tmp_path):
    save_file(TENSORS, tmp_path / "published", {"format": "pt"})
    tensors, about = read_tensors(tmp_path / "published")
    assert about == {} and tensors["b"].equal(TENSORS["b"])
