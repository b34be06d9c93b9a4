"""The backbone passes mmgen's suite, and nothing but its adapters trains."""

import pytest
from mmgen.testing import TEXTS, BackboneSuite

from mmgen_lora import LoraBert

pytest.importorskip("peft", reason="peft is not installed; pip install peft")


def small():
    return LoraBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, vocab_size=100, rank=2)


class TestLora(BackboneSuite):
    def config(self):
        return small()

    def source_logits(self, backbone, ids):
        return backbone.model(input_ids=ids).logits


def test_only_adapters_train():
    backbone = small().build(texts=TEXTS)
    trains = [name for name, parameter in backbone.named_parameters() if parameter.requires_grad]
    assert len(trains) == 2 * 2 * 2 and all("lora_" in name for name in trains)  # 2 layers, 2 maps, A and B
