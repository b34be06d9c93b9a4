"""The suite of backbones: what it finds, and what it lets pass."""

from dataclasses import replace

import pytest
import torch
from kit.broken import backbone_suite, tiny
from torch import nn

from mmgen.attention import prefix_layout
from mmgen.tensors import MASK, PAD, WRITTEN, Encoded, Slots
from mmgen.testing import TEXTS, Tiny, TinyBackbone, failures
from mmgen.testing.mixing import TinyAlone, TinyLeft, TinyRow, backbones
from mmgen.testing.rows import behind, pick, prefix, some_ids


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


@pytest.fixture(scope="module")
def backbone():
    return Tiny().build(TEXTS)


def test_ids_are_different_words(backbone):
    ids = some_ids(backbone, 5)
    assert len({*ids}) == 5
    assert not {*ids} & {backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id}
    with pytest.raises(AssertionError, match="encode_text returns only [0-9]+ different tokens for the suite's texts"):
        some_ids(backbone, 10_000)


def test_inputs_are_padded_on_the_right(backbone):
    rows = prefix(backbone, [[5, 6, 7], [5]], width=4)
    assert rows.layout.real.tolist() == [[True, True, True, False], [True, False, False, False]]
    assert rows.positions.tolist() == [[0, 1, 2, 2], [0, 0, 0, 0]]
    assert pick(rows, [1, 1]).layout.real.tolist() == [[True, False, False, False]] * 2


def test_targets_stand_behind_their_input(backbone):
    before = prefix(backbone, [[5, 6], [5]])
    rows = behind(backbone, before, [[[7, 8]], [[7], [8]]])
    assert rows.layout.role.tolist() == [[WRITTEN, MASK, MASK], [MASK, MASK, PAD]]
    assert rows.layout.group.tolist() == [[1, 1, 1], [1, 2, 0]]
    assert rows.positions[0].tolist() == [2, 2, 3] and rows.positions[1, :2].tolist() == [1, 1]
    one_step = behind(backbone, before, [[[7, 8]], [[7, 8]]], steps=(2, 1))
    assert one_step.layout.role.tolist() == [[WRITTEN, MASK], [MASK, PAD]]


def test_rotary_positions_pass():
    """Positions that count only by how far apart they are."""

    class Relative(TinyBackbone):
        def encode(self, slots, cache=None, output=()):
            return super().encode(replace(slots, positions=slots.positions - slots.positions[:, :1]), cache, output)

    tiny(Relative)().test_positions_matter()
