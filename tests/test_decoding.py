"""Decoding: the defaults of left to right, and the options of a generator with another order, from the recipe to
a finished run."""

import json
import tomllib

import pytest
from kit.diffusion import Denoising
from kit.toys import PLACE, RECIPE, mmgen_here, toml
from pydantic import ValidationError

import mmgen
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
        with pytest.raises(ValueError, match=message):
            options.for_texts(n)


@pytest.mark.parametrize(
    ("options", "alternative"),
    [
        ({"num_beams": 2}, "do_sample = true"),
        ({"num_beams": 2, "do_sample": True}, "num_beams = 1"),
    ],
)
def test_beams_give_at_most_one_text_each(options, alternative):
    with pytest.raises(ValidationError) as error:
        Decoding(num_return_sequences=3, **options)
    reason = f"num_return_sequences: 3 texts need {alternative}, or num_beams of at least that number"
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
    assert "[decoding] with this generator: Options of the denoising of texts." in shown and "steps = 6" in shown
    keys = json.loads(mmgen_here(diffusion, "schema").stdout)["$defs"]["DecodingConfig"]["properties"]
    assert {"num_beams", "steps"} <= {*keys} and len(keys["steps"]["anyOf"]) == 2  # also the generator any_order's


@pytest.mark.slow
def test_a_step_that_trains_nothing_writes_in_another_number_of_steps(diffusion, no_page):
    again = ("--set", 'steps.again={start="first", train=[], decoding={steps=2}}')
    assert mmgen_here(diffusion, "run", "toy.toml").returncode == 0
    trained = (diffusion / PLACE / "steps/first/weights.safetensors").read_bytes()
    assert json.loads((diffusion / PLACE / "recipe.json").read_text())["decoding"]["steps"] == 6
    (first, *_), _ = map(json.loads, (diffusion / PLACE / "steps/first/generations.jsonl").read_text().splitlines())
    assert first["score_kind"] == "confidence" and 0 <= first["score"] <= 1
    table = (diffusion / PLACE / "table.md").read_text()
    assert "first: the score of a text is a confidence" in table

    written = mmgen_here(diffusion, "run", "toy.toml", *again)
    assert written.returncode == 0, written.stderr
    assert "| again " in written.stdout
    assert "again: the weights of first with another decoding (steps: 6 -> 2)" in written.stdout
    steps = json.loads((diffusion / PLACE / "recipe.json").read_text())["steps"]
    assert steps["again"]["decoding"]["steps"] == 2 and steps["again"]["decoding"]["order"] == "left"
    assert {path.name for path in (diffusion / PLACE / "steps/again").iterdir()} == {"generations.jsonl", "scores.json"}
    assert (diffusion / PLACE / "steps/first/weights.safetensors").read_bytes() == trained
    wrong = mmgen_here(diffusion, "check", "toy.toml", *again, "--set", "steps.again.decoding.num_beams=3")
    assert wrong.stderr == (
        "error: --set steps.again.decoding.num_beams=3: steps.again.decoding.num_beams: no such key; "
        f"the keys are: {KEYS}\n"
    )

    several = mmgen_here(diffusion, "generate", PLACE, "--caption", "a dog", "--n", "3")
    assert several.stdout.count("(confidence)") == 3, several.stderr
    set_steps = mmgen_here(diffusion, "generate", PLACE, "--caption", "a dog", "--set", "decoding.steps=1")
    assert set_steps.returncode == 0, set_steps.stderr

    run = mmgen.load(diffusion / PLACE)
    assert run.decoding(3) == Denoising(order="left", num_return_sequences=3, temperature=1.0)
    assert run.ask({"caption": "a dog"}, 3, {"steps": 2}).texts[0].score_kind == "confidence"
    assert run.decoding(2, {"steps": 2}) == Denoising(order="left", num_return_sequences=2, steps=2)
    with pytest.raises(DataError, match=r"steps: must be at least 1, not 0"):
        run.ask({"caption": "a dog"}, options={"steps": 0})


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
