"""Broken backbones are caught in words, and unusual ones pass."""

import pytest
import torch
from kit.broken import assert_caught, backbone_suite, broken_parts
from torch import nn

from mmgen.tensors import Encoded
from mmgen.testing import Tiny, TinyBackbone, failures


@pytest.mark.parametrize("suite, test, words", broken_parts("backbone"))
def test_a_broken_part_is_caught_in_words(suite, test, words):
    assert_caught(suite, test, words)


def test_a_causal_backbone_that_cannot_cache_passes():
    """A recurrent network: reads left to right, skips padding, sees no masks."""

    class Recurrent(TinyBackbone):
        masks, caches = "causal", False

        def __init__(self, config, words):
            super().__init__(config, words)
            self.cell, self.types = nn.GRUCell(config.embedding, config.width), 0

        def encode(self, slots, cache=None, output=()):
            state, states = slots.states.new_zeros(len(slots.states), self.hidden_size), []
            for number in range(slots.states.shape[1]):
                real = slots.layout.real[:, number, None]
                state = torch.where(real, self.cell(slots.states[:, number], state), state)
                states.append(state)
            return Encoded(torch.stack(states, 1))

    class Config(Tiny):
        """A recurrent one."""

        mixes = "row"

        def build(self, texts=None, folder=None):
            return Recurrent(self, super().build(texts, folder).tokenizer.words)

    assert failures(backbone_suite(Config)) == {}
    Config.mixes = "visible"  # `mmgen check` would let the generator `masked` pass
    assert [*failures(backbone_suite(Config))] == ["test_attributes"]
