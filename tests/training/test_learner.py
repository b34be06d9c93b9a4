"""The learner of a step: it resumes from its checkpoint to the bit."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from kit import toys
from torch import nn

from mmgen.parts import Backbone
from mmgen.recipe.tables import Step, Training
from mmgen.training.train import Trainer

MATERIAL = SimpleNamespace(plan=range(4), streams=(), micro_batch_size=1, losses=())  # 4 updates
OPTIMISERS = [{}, {"bias_correction": False}, {"optimizer": "sgd", "momentum": 0.9}]


class OneLayer(nn.Linear):
    """A backbone that does not recompute its layers."""

    set_gradient_checkpointing = Backbone.set_gradient_checkpointing


class TwoWeights(nn.Module):
    """A minimal model to train: a backbone of two parameters."""

    inputs: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    has_generator = True

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.generator = OneLayer(1, 1), nn.Identity()
        for parameter in self.parameters():
            nn.init.ones_(parameter)

    def part(self, name: str) -> nn.Module:
        return self.backbone

    def objective(self, name: str) -> nn.Module:
        return self.generator


def learner(folder: Path, **training) -> Trainer:
    """The learner of two weights, resumed from the checkpoint in the folder."""
    step = Step(inputs=("caption",), train=("backbone",), training=Training(learning_rate=0.1, **training))
    return Trainer(TwoWeights(), toys.context(folder, step), MATERIAL)


def update(learner: Trainer, *gradients: float) -> dict[str, torch.Tensor]:
    """One update per gradient, which both weights share; returns weights and moments."""
    for gradient in gradients:
        for parameter in learner.trained.values():
            parameter.grad = torch.full_like(parameter, gradient)
        learner.optimizer.step()
    tensors = {name: parameter.detach() for name, parameter in learner.trained.items()}
    for name, parameter in learner.trained.items():
        tensors |= {f"{name}.{kind}": moment for kind, moment in learner.optimizer.state[parameter].items()}
    return tensors


@pytest.mark.parametrize("training", OPTIMISERS, ids=["AdamW", "BertAdam", "SGD"])
def test_a_resumed_learner_has_the_weights_and_the_moments_of_its_optimiser(tmp_path, training):
    expected = update(learner(tmp_path / "whole", **training), 1.0, 0.5, -2.0)
    stopped = learner(tmp_path, **training)
    update(stopped, 1.0, 0.5)
    stopped.cursor.records = [{}, {}]
    stopped.save()
    resumed = update(learner(tmp_path, **training), -2.0)
    assert resumed.keys() == expected.keys() and len(expected) > 2
    assert all(resumed[name].equal(tensor) for name, tensor in expected.items())
