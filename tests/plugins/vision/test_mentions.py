"""Mentions of things in texts, as tags and as numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from kit import toys
from kit.weights import perturbed
from mmgen_visualbert import VisualBertRegions

from mmgen.examples import All, ResolvedExample
from mmgen.inference.predictor import Predictor
from mmgen.model import Objectives, compose
from mmgen.parts import Record
from mmgen.recipe.load import load
from mmgen.registry import installed

MENTIONS = ("question", "choice")
RECIPE = toys.recipe(
    backbone={"type": "visualbert", "vocab_size": 99},
    inputs={
        "question": {"type": "text"},
        "choice": {"type": "text"},
        "image": {"type": "visualbert_regions", "mentions": [*MENTIONS], "extractor": {"type": "roi"}},
    },
    objectives={"choices": {"type": "multiple_choice"}},
    data={"type": "scene_choices"},
    metrics={"choices": {"type": "choice_accuracy"}},
    steps={
        "choices": {"inputs": [*MENTIONS, "image"], "train": ["backbone"], "objectives": ["choices"]},
    },
)
SEEN = Record("seen", np.eye(3, dtype=np.float32), np.array([[0, 0, 0.5, 1]] * 3, np.float32))


@pytest.fixture
def predictor(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    recipe = load(tmp_path / "toy.toml", installed())[0]
    stored = VisualBertRegions(width=3, fingerprint={}, fields=("image",), mentions=MENTIONS)
    torch.manual_seed(0)
    model = compose(
        recipe.backbone,
        {**recipe.inputs, "image": stored},
        recipe.generator,
        texts=["what does Casey see the dog Pat"] * 3,
        objectives=Objectives(recipe.objectives, {}),
    )
    return Predictor(perturbed(model, 0.3), recipe, "choices")


@pytest.mark.slow
def test_mentions_of_a_question_and_of_its_choices_are_read(predictor):
    labels = {"choices": ("Casey sees Pat", "the dog")}
    plain = ResolvedExample("q", {"image": SEEN, "question": "what does Casey see"}, labels=labels)
    of_question = {**plain.inputs, "question_mentions": All(((10, 15, (0,)),))}
    of_choices = {**labels, "choice_mentions": (((0, 5, (0,)), (11, 14, (1,))), ())}
    examples = [plain, replace(plain, inputs=of_question), replace(plain, labels=of_choices)]
    assert len({json.dumps(answer.value) for answer in predictor.predict_all(examples)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "labels", "message"),
    [
        (
            {"question_mentions": All(((10, 15, (-1,)),))},
            {},
            "example 'q' mentions object -1 in 'question', but its picture has 3 objects, which count from 0",
        ),
        ({}, {"choice_mentions": ((),)}, "example 'q' has 2 choices but 1 choice_mentions; give one per choice"),
    ],
)
def test_mentions_that_do_not_do(predictor, fields, labels, message):
    inputs = {"image": SEEN, "question": "what does Casey see", **fields}
    example = ResolvedExample("q", inputs, labels={"choices": ("Casey sees Pat", "the dog"), **labels})
    (answer,) = predictor.predict_all([example])
    assert message in answer.error
