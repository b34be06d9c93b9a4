"""Networks without random initial values: parameters are not filled, buffers are, and nothing else changes."""

import torch
from torch import nn

from mmgen.features.uninitialised import Uninitialised, building_device


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


def test_the_device_of_a_context_is_known():
    assert building_device() == torch.device("cpu")
    with torch.device("meta"):
        assert building_device() == torch.device("meta")
