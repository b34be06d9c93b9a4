"""The script that compares published VisualBERT checkpoints with transformers' class."""

import pytest
from transformers import VisualBertConfig, VisualBertForPreTraining

from mmgen.errors import DataError
from tools import hub


@pytest.mark.slow
def test_a_checkpoint_equals_transformers(tmp_path):
    config = VisualBertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, visual_embedding_dim=8
    )
    VisualBertForPreTraining(config).save_pretrained(tmp_path)
    assert hub.difference(str(tmp_path), 8) < 1e-5


def test_all_checkpoints_are_listed(monkeypatch, capsys):
    results = {"a": 2e-7, "b": DataError("'b' cannot be loaded\n(no network)"), "c": 0.5}

    def difference(name, width):
        if isinstance(results[name], DataError):
            raise results[name]
        return results[name]

    monkeypatch.setattr(hub, "difference", difference)
    monkeypatch.setattr(hub, "NAMES", [("a", 2048), ("b", 1024)])
    assert hub.main() == 0
    monkeypatch.setattr(hub, "NAMES", [("c", 512)])
    assert hub.main() == 1
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith(("| a", "| b", "| c |"))] == [
        "| a | 2.0e-07 |",
        "| b | skipped: 'b' cannot be loaded (no network) |",
        "| c | 5.0e-01 WRONG |",
    ]
