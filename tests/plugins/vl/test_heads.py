"""Task heads, and their names in published weights."""

import pytest
import torch
from mmgen_vl.heads import published_head, region_layers
from torch import nn

from mmgen.errors import DataError


@pytest.mark.parametrize("name", ["cls", "classifier", "bert.classifier"])
def test_a_head_of_any_name_is_taken(name):
    weights = {f"{name}.weight": torch.ones(2, 4), f"{name}.bias": torch.zeros(2)}
    assert published_head(weights, nn.Linear(4, 2), "answers").keys() == {"answers.weight", "answers.bias"}


def test_the_head_of_another_task_is_ignored():
    weights = {"cls.weight": torch.ones(3, 4), "cls.bias": torch.zeros(3)}
    assert published_head(weights, nn.Linear(4, 2)) == {}
    assert published_head({"cls.weight": torch.ones(3, 4)}, nn.Linear(4, 2)) == {}
    with pytest.raises(
        DataError, match="^the head is only half there: 'cls.bias' is missing, but 'cls.weight' is not; "
    ):
        published_head({"cls.weight": torch.ones(2, 4)}, nn.Linear(4, 2))


def test_layers_begin_as_in_bert():
    torch.manual_seed(0)
    dense, logits = region_layers(64, 9)
    assert dense.weight.shape == (64, 64) and logits.weight.shape == (9, 64)
    assert abs(dense.weight.std().item() - 0.02) < 0.002 and not dense.bias.any() and not logits.bias.any()
