"""Decoding: the defaults of left to right, and the options of a generator with another order, from the recipe to
a finished run."""

import json
import tomllib

import pytest
from kit.toys import RECIPE, mmgen_here, toml
from pydantic import ValidationError

from mmgen import Decoding, DecodingConfig
from mmgen.errors import DataError

KEYS = "steps, order, temperature, num_return_sequences"
PLUGIN = "from kit.diffusion import Diffusion, register_generators\n"


def recipe(**decoding) -> str:
    tables = tomllib.loads(RECIPE)
    del tables["steps"]["second"]
    tables["generator"] = {"type": "diffusion", "max_tokens": 8}
    tables["data"] |= {"train_size": 8, "val_size": 2, "test_size": 2}
    return toml({**tables, "decoding": {"order": "left", **decoding}})


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


@pytest.fixture
def diffusion(site, tmp_path):
    site("mmgen-diffusion", "mmgen_diffusion", PLUGIN)
    (tmp_path / "toy.toml").write_text(recipe())
    return tmp_path


def test_keys_are_checked_by_the_generators_class(diffusion):
    (diffusion / "wrong.toml").write_text(recipe(step=4, num_beams=3))
    line = [*recipe(step=4, num_beams=3).splitlines()].index("step = 4") + 1
    done = mmgen_here(diffusion, "check", "wrong.toml")
    assert done.stderr.splitlines()[:2] == [
        f"error: wrong.toml:{line}: decoding.step: no such key; did you mean 'steps'?",
        f"wrong.toml:{line + 1}: decoding.num_beams: no such key; the keys are: {KEYS}",
    ]
    assert mmgen_here(diffusion, "check", "toy.toml").returncode == 0
    shown = mmgen_here(diffusion, "plugins", "diffusion").stdout
    assert "[decoding] with it:\n  Options of the denoising of texts." in shown and "steps = 6" in shown
    keys = json.loads(mmgen_here(diffusion, "schema").stdout)["$defs"]["DecodingConfig"]["properties"]
    assert {"num_beams", "steps"} <= {*keys} and keys["steps"]["maximum"] == 1000  # also the generator any_order's


def test_a_generator_of_one_text_says_so(site, tmp_path):
    from kit.diffusion import Diffusion

    from mmgen.inference.predictor import Predictor

    class One(DecodingConfig):
        steps: int = 2

    class Once(Diffusion):
        decoding = One

    predictor = object.__new__(Predictor)
    predictor.recipe = type("Recipe", (), {"generator": Once(), "decoding": One()})
    for chosen, message in (
        ({}, "n = 3: the generator writes one text per query"),
        ({"steps": 3}, "num_return_sequences: no such key; the keys are: steps"),
    ):
        with pytest.raises(DataError) as error:
            predictor.decoding(3, chosen)
        assert str(error.value) == message
    assert predictor.decoding(1, {"steps": 3}) == One(steps=3) and predictor.decoding() == One()
