"""A run checks what would spoil its results silently; an error names the part in one line."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from kit.broken import OwnsTheBackbone
from mmgen_masked import Masked
from mmgen_masked.generator import MaskedGenerator, MaskedTargets

from mmgen.data.collate import Collator
from mmgen.data.part_checks import references_of, score_with
from mmgen.data.seeds import resolve
from mmgen.errors import PluginError
from mmgen.evaluation.answers import generate
from mmgen.model import Model
from mmgen.parts import Metric
from mmgen.tensors import Loss, Scores, Segment
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


def plugin_error(call, *arguments) -> str:
    with pytest.raises(PluginError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


class Wide(WordsEmbedder):
    def forward(self, ids, mask):
        states = super().forward(ids, mask).states
        return Segment(torch.cat([states, states[..., :1]], -1), mask)


class Swapped(WordsEmbedder):
    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states.transpose(0, 1), mask)


class Unmasked(WordsEmbedder):
    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states, mask.long())


class Bare(WordsEmbedder):
    def forward(self, ids, mask):
        return super().forward(ids, mask).states


@pytest.mark.parametrize(
    "embedder, words",
    [
        (Wide, "input 'caption' (Wide): states have width 13, but input_size of the backbone is 12"),
        (Swapped, "input 'caption' (Swapped): states must have shape (B, N, E) with B = 3, not (5, 3, 12)"),
        (Unmasked, "input 'caption' (Unmasked): mask must be bool of shape (3, 5), not torch.int64 (3, 5)"),
        (Bare, "input 'caption' (Bare): forward must return a mmgen.tensors.Segment, not a float32 tensor (3, 5, 12)"),
    ],
)
def test_a_wrong_segment(embedder, words):
    assert plugin_error(compute_loss, model(embedder)) == words


def test_the_backbone_as_an_attribute():
    assert plugin_error(model, OwnsTheBackbone) == (
        "input 'caption' (OwnsTheBackbone): contains the backbone's words.weight as a parameter, which would be "
        "saved twice and trained with the input; write self._backbone = [backbone], a list"
    )


@pytest.mark.parametrize(
    "loss, words",
    [
        (lambda loss: loss.sums["loss"], "forward returns a float32 tensor (), not a Loss with a sum () for 'loss'"),
        (
            lambda loss: Loss({"loss": loss.sums["loss"][None]}),
            "forward returns a Loss of 'loss': a float32 tensor (1,), not a Loss with a sum () for 'loss'",
        ),
    ],
)
def test_a_wrong_loss(loss, words):
    class Wrong(MaskedGenerator):
        def forward(self, model, batch, targets):
            return loss(super().forward(model, batch, targets))

    assert words in plugin_error(compute_loss, model(generator=Wrong))


def test_a_loss_without_a_count():
    class Uncounted(MaskedTargets):
        def collate(self, rows):
            return replace(super().collate(rows), counts={})

    built_model = model()
    built_model.generator.reader.__class__ = Uncounted
    assert plugin_error(compute_loss, built_model).endswith("): its reader's `collate` counts nothing for 'loss'")


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda texts: texts[1:], "generate returns answers to 2 examples, not to 3"),
        (lambda texts: texts[::-1], "generate returns an answer with the id 'blue-cat' for 'red-cat'"),
        (
            lambda texts: [[replace(text, score=math.nan) for text in some] for some in texts],
            "generate returns the score nan for 'red-cat'; the weights of the model may be damaged: far too large "
            "weights give nan",
        ),
    ],
)
def test_wrong_texts(change, words):
    class Wrong(MaskedGenerator):
        def generate(self, model, batch, options):
            return change(super().generate(model, batch, options))

    assert plugin_error(generate, model(generator=Wrong), EXAMPLES) == f"Wrong.{words}"


@pytest.mark.parametrize(
    "scores, words",
    [
        (Scores({"hits": math.nan}), "hits is nan; values must be finite numbers, or None"),
        (Scores({"hits": 1.0}, {"hits": [1.0, 1.0]}), "hits has 2 values for 3 examples"),
        (Scores({"hits": 1.0}, {"hits": [1.0, None, math.inf]}), "hits is inf; values must be finite numbers, or None"),
        ({"hits": 1.0}, "returns {'hits': 1.0}; expected a mmgen.tensors.Scores"),
    ],
)
def test_wrong_scores(scores, words):
    assert plugin_error(score_with, "mine", FixedScores(scores), [], EXAMPLES) == f"metrics.mine (FixedScores): {words}"


class FixedScores(Metric):
    """Returns its argument as scores."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, generations, examples):
        return self.references(examples)

    def references(self, examples):
        return self.scores


def test_wrong_references():
    scores = Scores({}, {"hits": [1.0]})
    message = "metrics.mine (FixedScores): hits has 1 values for 3 examples"
    assert plugin_error(references_of, "mine", FixedScores(scores), EXAMPLES) == message
    assert references_of("mine", FixedScores(None), EXAMPLES) is None


def test_good_scores_pass():
    good = Scores({"hits": 1, "others": None}, {"hits": [1.0, 0, True]}, ("others: none",))
    assert score_with("mine", FixedScores(good), [], EXAMPLES) is good
