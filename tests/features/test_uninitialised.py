"""Networks without random initial values: parameters are not filled, buffers are, and nothing else changes."""

import pytest
import torch
from torch import nn

from mmgen.errors import RunError
from mmgen.features.uninitialised import Uninitialised


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.register_buffer("projection", torch.empty(3).normal_(), persistent=False)
        self.table = nn.Parameter(torch.full((2,), 7.0))
        nn.init.normal_(self.table)
        nn.init.trunc_normal_(nn.Parameter(torch.zeros(2)))


def test_parameters_are_not_filled_with_random_numbers():
    torch.manual_seed(0)
    expected = torch.empty(3).normal_()
    torch.manual_seed(0)
    with Uninitialised():
        network = Network()
    assert torch.equal(network.projection, expected)  # no parameter has drawn a number before it
    assert network.table.tolist() == [7, 7]
    assert network.norm.weight.tolist() == [1] * 4 and isinstance(network.layer.weight, nn.Parameter)
    assert Network().table.tolist() != [7, 7]


def test_settings_that_claim_more_memory_than_the_weights_have_are_refused():
    with Uninitialised(numbers=16), torch.device("meta"):
        nn.Linear(1 << 20, 1 << 20)  # takes none
    with pytest.raises(RunError, match="far larger than its weights"), Uninitialised(numbers=16):
        nn.Linear(1 << 20, 1 << 20)
