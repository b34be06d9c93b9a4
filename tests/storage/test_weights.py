"""Weights that do not fit a model are told in a line, with what to do."""

import pytest
import torch
from torch import nn

from mmgen.errors import RunError
from mmgen.storage.weights import load_state

MEND = (
    "a different recipe or version of mmgen has written the file; use that version (see environment.json of the run), "
    "or train again with `mmgen run --fresh`"
)


@pytest.mark.parametrize(
    "tensors, message",
    [
        (
            {"0.weight": torch.ones(2, 2), "0.bias": torch.ones(2)},
            "not the weights of this model: 2 missing (1.bias, 1.weight), 2 unknown (0.bias, 0.weight)",
        ),
        (
            {"1.weight": torch.ones(2, 3), "1.bias": torch.ones(2)},
            "1.weight has shape (2, 3) in the file but (2, 2) in this model",
        ),
    ],
    ids=["names", "shapes"],
)
def test_weights_of_another_model(tensors, message):
    with pytest.raises(RunError) as error:
        load_state(nn.Sequential(nn.GELU(), nn.Linear(2, 2)), tensors, "weights.safetensors")
    assert str(error.value) == f"weights.safetensors: {message}; {MEND}"
