"""Decoding: the defaults of left to right, and generators with options of their own."""

import json
from types import SimpleNamespace

import pytest
from kit.toys import mmgen_here
from mmgen_generators import AnyOrder
from pydantic import ValidationError

from mmgen import Decoding, DecodingConfig
from mmgen.errors import DataError
from mmgen.inference.predictor import Predictor


def test_several_texts_are_the_best_different_ones_of_many_candidates():
    beams = Decoding(num_beams=5, length_penalty=0.5)
    assert beams.texts == 1 and beams.for_texts(1) is beams
    assert beams.for_texts(3) == Decoding(candidates=20, num_return_sequences=3, length_penalty=0.5)
    assert beams.for_texts(50).candidates == 200
    assert Decoding(candidates=30, difference=0.5).for_texts(2) == Decoding(
        candidates=30, difference=0.5, num_return_sequences=2
    )


def test_a_class_of_its_own_writes_one_text_or_as_many_as_it_has_a_key_for():
    class Plain(DecodingConfig):
        steps: int = 4

    class Many(Plain):
        num_return_sequences: int = 1

        def model_post_init(self, context):
            if self.num_return_sequences > 5:
                raise ValueError("num_return_sequences: at most 5")

    assert Plain().texts == 1 and Plain(steps=2).for_texts(1) == Plain(steps=2)
    assert Many(steps=2).for_texts(3) == Many(steps=2, num_return_sequences=3)
    for options, n, message in ((Plain(), 2, "writes one text per query"), (Many(), 6, "at most 5")):
        with pytest.raises((DataError, ValueError), match=message):
            options.for_texts(n)


def test_beams_give_at_most_one_text_each():
    for options, reason in (
        (
            {"num_beams": 2, "num_return_sequences": 3},
            "num_return_sequences: 3 texts need do_sample = true, or num_beams of at least that number",
        ),
        (
            {"num_beams": 2, "do_sample": True},
            "do_sample: samples without beams; set num_beams = 1, or remove do_sample",
        ),
    ):
        with pytest.raises(ValidationError) as error:
            Decoding(**options)
        assert error.value.errors()[0]["msg"] == f"Value error, {reason}"
    assert Decoding(do_sample=True, num_return_sequences=3).texts == 3


@pytest.mark.parametrize("penalty", [1e-300, 1e300])  # tokens cannot be drawn by infinite logits
def test_a_repetition_penalty_has_limits(penalty):
    with pytest.raises(ValidationError):
        Decoding(repetition_penalty=penalty)


def test_the_keys_are_those_of_the_generators_class(tmp_path):
    shown = mmgen_here(tmp_path, "plugins", "any_order").stdout
    assert "[decoding] with it:\n  How texts are written: " in shown and 'order = "confidence"' in shown
    keys = json.loads(mmgen_here(tmp_path, "schema").stdout)["$defs"]["DecodingConfig"]["properties"]
    assert {"num_beams", "steps"} <= {*keys}


def test_a_generator_of_one_text_says_so():
    class One(DecodingConfig):
        steps: int = 2

    class Once(AnyOrder):
        decoding = One

    predictor = object.__new__(Predictor)
    predictor.recipe = SimpleNamespace(generator=Once(), decoding=One())
    for chosen, message in (
        ({}, "n = 3: the generator writes one text per query"),
        ({"steps": 3}, "num_return_sequences: no such key; the keys are: steps"),
    ):
        with pytest.raises(DataError) as error:
            predictor.decoding(3, chosen)
        assert str(error.value) == message
    assert predictor.decoding(1, {"steps": 3}) == One(steps=3) and predictor.decoding() == One()
