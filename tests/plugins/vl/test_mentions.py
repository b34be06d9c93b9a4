"""Mentions of things in texts, as tags and as numbers."""

import json
from typing import Literal

import numpy as np
import pytest
import torch
from kit import toys
from mmgen_visualbert import VisualBertRegions
from mmgen_vl.mentions import MentionedReader, Mentions
from mmgen_vl.mentions_config import MentionsConfig
from mmgen_vlbert import VlBertRegions

from mmgen.errors import DataError
from mmgen.examples import All, ResolvedExample
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query, named_values
from mmgen.model import Objectives, compose
from mmgen.parts import Record
from mmgen.recipe.load import load
from mmgen.registry import installed

MENTIONS = ("question", "choice")
RECIPE = toys.recipe(
    backbone={
        "type": "visualbert",
        "num_hidden_layers": 1,
        "hidden_size": 32,
        "num_attention_heads": 2,
        "vocab_size": 99,
    },
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
        "words": {"inputs": ["question", "choice"], "train": ["backbone"], "objectives": ["choices"]},
    },
)
SEEN = Record("seen", np.eye(3, dtype=np.float32), np.array([[0, 0, 0.5, 1]] * 3, np.float32))
LINE = {"image": SEEN, "question": "what does Casey see", "choices": ["Casey sees Pat", "the dog"]}


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
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return Predictor(model, recipe, "choices")


def answered(predictor, **more):
    (answer,) = predictor.predict_all([Query("q", {**LINE, **more}, place="ask.jsonl:1")])
    return answer.error or answer.value["probabilities"]


@pytest.mark.slow
def test_mentions_of_a_question_and_of_its_choices_are_read(predictor):
    plain = answered(predictor)
    of_question, of_choices = [[10, 15, [0]]], [[[0, 5, [0]], [11, 14, [1]]], []]
    query = Query("q", {**LINE, "question_mentions": of_question, "choice_mentions": of_choices})
    read = predictor.prepare([query])[0].read.rows[0].example
    assert read.shown("question_mentions") == ((10, 15, (0,)),)
    assert read.labels["choice_mentions"] == [((0, 5, (0,)), (11, 14, (1,))), ()]
    mentioned = [answered(predictor, question_mentions=of_question), answered(predictor, choice_mentions=of_choices)]
    assert len({json.dumps(answer) for answer in (plain, *mentioned)}) == 3
    typed = ["question_mentions=[[10, 15, [0]]]", "choice_mentions=[[0, 5, [0]], [11, 14, [1]]]", "choice_mentions=[]"]
    assert (
        answered(predictor, **named_values(typed[:1])) == mentioned[0]
        and answered(predictor, **named_values(typed[1:])) == mentioned[1]
    )
    lists = [f"choices={json.dumps(LINE['choices'])}", f"choice_mentions={json.dumps(of_choices)}"]
    assert answered(predictor, **named_values(lists)) == mentioned[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"question_mentions": [[10, 15]]},
            "question_mentions: [[10, 15]] is not a list of mentions, [first character",
        ),
        (
            {"question_mentions": [[10, 99, [0]]]},
            "example 'q' mentions characters 10 to 99 of 'question', which has 19",
        ),
        (
            {"question_mentions": [[10, 15, [-1]]]},
            "example 'q' mentions object -1 in 'question', but its picture has 3 objects, which count from 0",
        ),
        ({"choice_mentions": [[]]}, "example 'q' has 2 choices but 1 choice_mentions; give one per choice"),
    ],
)
def test_mentions_that_do_not_do(predictor, fields, message):
    assert message in answered(predictor, **fields)


@pytest.mark.slow
def test_a_step_that_does_not_read_mentions_says_so(predictor):
    words = Predictor(predictor.model, predictor.recipe, "words")
    with pytest.raises(DataError, match="step 'words' does not read 'question_mentions'"):
        words.predict({"question": "x", "choices": ["a", "b"], "question_mentions": [[0, 1, [0]]]})


def test_mentions_without_an_input_are_refused():
    regions = VisualBertRegions(width=6, fingerprint={}, fields=("image",), mentions=("caption",))
    inputs = {"caption": "a cat", "image": Record("p", np.zeros((2, 6), np.float32), np.zeros((2, 4), np.float32))}
    reader = MentionedReader(regions, 36, Mentions(("caption",), 0, None))
    reader.read(ResolvedExample("e0", inputs))
    with pytest.raises(DataError) as error:
        reader.read(ResolvedExample("e0", inputs | {"question_mentions": All(((0, 1, (0,)),))}))
    assert str(error.value) == (
        "example 'e0' has question_mentions, but mentions = ['caption'] does not contain 'question'; add 'question', "
        "and name the input that reads this field 'question'"
    )


class Toy(MentionsConfig):
    type: Literal["toy"] = "toy"


@pytest.mark.parametrize("cls", [Toy, VisualBertRegions, VlBertRegions])
def test_a_field_for_each_text(cls):
    assert cls().optional_fields() == () and cls().first_object == 0
    config = cls(mentions=("question", "choice"))
    assert config.optional_fields() == ("question_mentions", "choice_mentions")
    assert config.from_json("question_mentions", [[12, 15, [0]]]) == All(((12, 15, (0,)),))
    with pytest.raises(ValueError, match="^7 is not a list of mentions, "):
        config.from_json("question_mentions", 7)


def test_the_fields_of_mentions_are_declared_once():
    for cls in (VisualBertRegions, VlBertRegions):
        assert not {"mentions", "first_object"} & cls.__annotations__.keys()
