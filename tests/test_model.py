"""The model: frozen copies, with which an objective distils."""

from typing import Literal

import torch
from kit import toys
from mmgen_generators import Masked
from torch import nn

import mmgen
import mmgen.testing
from mmgen.model import Objectives, compose
from mmgen.objectives import Objective, TargetReader
from mmgen.storage.weights import state
from mmgen.tensors import Loss, Targets
from mmgen.testing import Tiny, Words
from mmgen.testing.toy import TEXTS


class Hints(mmgen.ObjectiveConfig):
    """Distillation (Romero et al., 2015): a linear layer of [CLS] predicts the teacher's, the model at the step's
    start."""

    type: Literal["hints"] = "hints"

    def build(self, backbone, vocabularies):
        return HintsObjective(backbone.hidden_size)


class HintsReader(TargetReader):
    def collate(self, rows):
        return Targets({"loss": len(rows.examples)})


class HintsObjective(Objective):
    def __init__(self, width):
        super().__init__()
        self.reader, self.guess = HintsReader(), nn.Linear(width, width)
        self._teacher = []

    def on_train_begin(self, model):
        self._teacher = [model.frozen_copy()]

    def forward(self, model, batch, targets):
        with torch.no_grad():
            hints = self._teacher[0].encode(batch).first
        return Loss({"loss": (self.guess(model.encode(batch).first) - hints).square().mean(1).sum()})


class TestHints(mmgen.testing.ObjectiveSuite):
    def config(self):
        return Hints()


def student():
    torch.manual_seed(0)
    parts = Tiny(width=32), {"caption": Words().named("caption")}, Masked(max_tokens=9)
    return compose(*parts, texts=TEXTS, objectives=Objectives({"hints": Hints()}))


def test_a_frozen_copy_is_the_model_and_does_not_train():
    model = student()
    first, second = model.frozen_copy(), model.frozen_copy().frozen_copy()
    for copied in (first, second):
        assert not copied.training and not any(parameter.requires_grad for parameter in copied.parameters())
        assert len(copied.objectives) == 0 and copied.embedders["caption"]._backbone[0] is copied.backbone
        ours = {name: tensor for name, tensor in state(model).items() if not name.startswith("objectives.")}
        theirs = state(copied)
        assert ours.keys() == theirs.keys() and all(theirs[name].equal(tensor) for name, tensor in ours.items())
        assert not {t.data_ptr() for t in ours.values()} & {t.data_ptr() for t in theirs.values()}
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_attention_on_a_gpu_runs_without_cudnn_and_convolutions_without_tf32():
    """cuDNN prepares for every new shape, and rounds the rate of dropout."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    torch.backends.cudnn.allow_tf32 = True
    toys.model()
    assert not torch.backends.cuda.cudnn_sdp_enabled() and not torch.backends.cudnn.allow_tf32
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.mem_efficient_sdp_enabled()
