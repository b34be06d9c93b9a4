"""Contracts of parts: what they do where an author overrides nothing."""

import torch

from mmgen.testing import Tiny


def test_the_pooler_reads_the_first_slot():
    torch.manual_seed(0)
    backbone = Tiny(width=8).build(texts=["a dog"])
    backbone.add_pooler()
    states = torch.randn(2, 3, backbone.hidden_size)
    expected = torch.tanh(backbone.pooler.dense(states[:, 0]))
    assert torch.equal(backbone.pooled(states), expected) and not backbone.pooler.dense.bias.any()


def test_texts_are_tokenised_without_special_tokens():
    backbone = Tiny(width=8).build(texts=["a dog"])
    assert backbone.decode_text([backbone.start_id, *backbone.encode_text("a dog"), backbone.end_id]) == "a dog"
