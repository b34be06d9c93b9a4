"""The adapter to transformers: recomputed and compiled layers."""

import pytest
from kit import toys
from kit.training import largest_difference, step, train_step
from transformers.modeling_layers import GradientCheckpointingLayer


def layers(model):
    return [module for module in model.backbone.modules() if isinstance(module, GradientCheckpointingLayer)]


@pytest.mark.slow
def test_recomputing_trains_to_the_same_weights(tmp_path):
    """Afterwards the layers are as they were."""
    plain, recomputed = toys.model(dropout=0.0), toys.model(dropout=0.0)
    expected = train_step(tmp_path / "plain", plain, step())
    log = train_step(tmp_path / "recomputed", recomputed, step(gradient_checkpointing=True))
    assert [record["loss"] for record in log] == pytest.approx([record["loss"] for record in expected], abs=1e-5)
    assert largest_difference(plain, recomputed) < 1e-4
    assert not any(layer.gradient_checkpointing for layer in layers(recomputed))
