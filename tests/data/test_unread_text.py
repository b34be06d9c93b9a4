"""Remarks on texts that are cut, or have unknown words."""

import pytest
from kit import toys
from mmgen_inputs import Text

from mmgen.data.unread_text import remarks
from mmgen.examples import ResolvedExample
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.model import compose
from mmgen.recipe.load import load
from mmgen.registry import installed


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe(inputs={"caption": {"type": "text", "max_tokens": 6}}))
    return load(tmp_path / "toy.toml", installed())[0]


def compose_model(recipe, texts):
    return compose(recipe.backbone, recipe.inputs, recipe.generator, texts=texts)


def test_a_text_that_is_cut_or_unknown_has_a_remark_in_its_answer(recipe):
    predictor = Predictor(compose_model(recipe, ["a dog barks"] * 3), recipe, "first")
    captions = ("a dog barks", "a dog " * 20, "a 💥 💥")
    assert [
        prepared.answer.remarks
        for prepared in predictor.prepare([Query("q", {"caption": caption}) for caption in captions])
    ] == [
        (),
        ("caption has 40 tokens; only the first 6 are read (max_tokens)",),
        ("caption contains 2 words or characters that are not in the tokenizer's vocabulary",),
    ]


def test_several_fields_are_cut_as_one_text(recipe):
    config = Text(fields=("question", "answer"), max_tokens=6)
    backbone = compose_model(recipe, ["a dog barks"] * 3).backbone
    example = ResolvedExample("q", {"question": "a dog barks", "answer": "a dog barks a dog"})
    assert [*remarks("both", config, backbone, example)] == [
        "both has 8 tokens; only the first 6 are read (max_tokens)"
    ]
