"""A run checks what would spoil its results silently; an error names the part in one line."""

from __future__ import annotations

import math

import pytest
import torch
from kit.refusals import refusal
from mmgen_generators import Masked
from mmgen_generators.masked import MaskedGenerator

from mmgen.data.collate import Collator
from mmgen.data.part_checks import check_scores
from mmgen.data.seeds import resolve
from mmgen.errors import PluginError
from mmgen.evaluation.answers import generate
from mmgen.examples import Scores
from mmgen.model import Model
from mmgen.tensors import Loss
from mmgen.testing import TEXTS, Tiny, Toy
from mmgen.testing.toy import WordsEmbedder

EXAMPLES = [resolve(example) for example in Toy().build().split("train")[:3]]


def model(embedder=WordsEmbedder, generator=MaskedGenerator) -> Model:
    """A tiny model of these parts."""
    torch.manual_seed(0)
    backbone = Tiny().build(texts=TEXTS)
    return Model(backbone, {"caption": embedder("caption", backbone)}, generator(Masked(max_tokens=8), backbone)).eval()


def compute_loss(built_model: Model) -> Loss:
    return built_model(Collator(built_model, built_model.inputs)(EXAMPLES))


def test_a_loss_checks_itself():
    with pytest.raises(ValueError, match=r"the sum 'loss' of a Loss must be a tensor of shape \(\): tensor"):
        Loss({"loss": torch.zeros(1)})
    loss = Loss({"loss": torch.ones(())}, counts={"loss": 2.0})
    assert loss.mean.item() == 0.5 and loss.over({"other": 3}).item() == 0
    with pytest.raises(PluginError, match="the sum 'loss' of a Loss has no count; the reader's collate must count it"):
        Loss({"loss": torch.ones(())}).over({"other": 3})


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda texts: texts[1:], "generate returns answers to [['green-cat'], ['blue-cat']]; expected "),
        (lambda texts: texts[::-1], "generate returns answers to [['blue-cat'], "),
    ],
)
def test_wrong_texts(change, words):
    class Wrong(MaskedGenerator):
        def generate(self, model, batch, options):
            return change(super().generate(model, batch, options))

    assert refusal(generate, model(generator=Wrong), EXAMPLES).startswith(f"Wrong.{words}")


@pytest.mark.parametrize(
    "scores, words",
    [
        (Scores({"hits": math.nan}), "hits is nan; values must be finite numbers, or None"),
        (Scores({"hits": 1.0}, {"hits": [1.0, 1.0]}), "hits has 2 values for 3 examples"),
        (Scores({"hits": 1.0}, {"hits": [1.0, None, math.inf]}), "hits is inf; values must be finite numbers, or None"),
    ],
)
def test_wrong_scores(scores, words):
    assert refusal(check_scores, "mine", scores, EXAMPLES) == f"metrics.mine: {words}"
