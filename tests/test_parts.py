"""Contracts of parts: what they do where an author overrides nothing; layers that start from others."""

import torch
from kit import toys
from mmgen_vision.heads import published_layer

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


def test_a_published_layer_is_found_by_the_end_of_its_name():
    weights = {"model.cls.dense.weight": torch.ones(2, 2), "model.cls.dense.bias": torch.ones(2)}
    assert published_layer(weights, "cls.dense", "head").keys() == {"head.weight", "head.bias"}
    del weights["model.cls.dense.bias"]
    assert published_layer(weights, "cls.dense", "head").keys() == {"head.weight"}


def test_attention_on_a_gpu_runs_without_cudnn_and_convolutions_without_tf32():
    """cuDNN prepares for every new shape, and rounds the rate of dropout."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    torch.backends.cudnn.allow_tf32 = True
    toys.pictured()
    assert not torch.backends.cuda.cudnn_sdp_enabled() and not torch.backends.cudnn.allow_tf32
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.mem_efficient_sdp_enabled()
