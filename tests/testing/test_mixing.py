"""The fake backbones of every kind of `mixes`: who sees whom."""

import torch

from mmgen.attention import prefix_layout
from mmgen.tensors import Slots
from mmgen.testing import TEXTS
from mmgen.testing.mixing import TinyAlone, TinyLeft, TinyRow, backbones


def seen(config):
    """Who sees whom in a row of three slots and one of padding."""
    backbone = config.build(TEXTS)
    mask = torch.tensor([[True, True, True, False]])
    zeros = torch.zeros(1, 4, dtype=torch.long)
    slots = Slots(torch.zeros(1, 4, backbone.input_size), zeros, zeros, prefix_layout(mask))
    return backbone.seen(slots, None)[0, :3].int().tolist()


def test_who_sees_whom():
    assert seen(TinyRow()) == [[1, 1, 1, 0]] * 3
    assert seen(TinyLeft()) == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert seen(TinyAlone()) == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]


def test_with_which_a_generator_must_work():
    assert backbones("row", "any") == (TinyRow(),)
    assert backbones("row", "causal") == (TinyLeft(),)
    assert backbones("nothing", "any") == (TinyAlone(),)
