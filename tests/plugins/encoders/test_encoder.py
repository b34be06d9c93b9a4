"""The adapter to transformers: recomputed and compiled layers."""

import shutil

import pytest
import torch
from kit import toys
from kit.training import largest_difference, step, train_step
from mmgen_encoders import FAMILIES
from transformers import AutoConfig, AutoModelForMaskedLM
from transformers.modeling_layers import GradientCheckpointingLayer

from mmgen.storage.weights import state


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model_fields["type"].default)
def test_families_support_what_transformers_supports(family):
    model_config = AutoConfig.for_model(
        family.model_construct(type=family.model_fields["type"].default).transformers_name
    )
    model_class = AutoModelForMaskedLM._model_mapping[type(model_config)]
    assert family.supports_gradient_checkpointing == model_class.supports_gradient_checkpointing
    assert family.supports_torch_compile == model_class.supports_gradient_checkpointing  # the same layers


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


def compiled_like_plain(folder):
    plain, compiled = toys.model(dropout=0.0), toys.model(dropout=0.0)
    expected = train_step(folder / "plain", plain, step(epochs=1))
    log = train_step(folder / "compiled", compiled, step(epochs=1, torch_compile=True))
    assert [record["loss"] for record in log] == pytest.approx([record["loss"] for record in expected], abs=1e-5)
    assert state(plain).keys() == state(compiled).keys() and largest_difference(plain, compiled) < 1e-4
    assert all(layer._compiled_call_impl is None for layer in layers(compiled))


@pytest.mark.slow
def test_every_layer_is_compiled_while_a_step_trains(tmp_path, monkeypatch):
    """With a stand-in for the compiler."""
    calls = []

    def compile_nothing(function, **options):
        return lambda *values, **named: calls.append(options) or function(*values, **named)

    monkeypatch.setattr(torch, "compile", compile_nothing)
    compiled_like_plain(tmp_path)
    assert calls and len(calls) % 2 == 0  # two layers


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler (g++), which is not installed")
def test_compiled_layers_train_to_the_same_weights(tmp_path):
    compiled_like_plain(tmp_path)
