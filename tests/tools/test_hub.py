"""The script that compares published VisualBERT checkpoints with transformers' class."""

import pytest
from transformers import VisualBertConfig, VisualBertForPreTraining

from tools import hub


@pytest.mark.slow
def test_a_checkpoint_equals_transformers(tmp_path):
    config = VisualBertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, visual_embedding_dim=8
    )
    VisualBertForPreTraining(config).save_pretrained(tmp_path)
    assert hub.difference(str(tmp_path), 8) < 1e-5
