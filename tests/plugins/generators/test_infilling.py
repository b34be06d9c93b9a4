"""Gaps in partly written texts, from the command line and from Python; exports that carry the masked generator's
weights into this one."""

import json

import pytest
import torch
from kit.toys import mmgen_here, recipe
from safetensors.torch import load_file

import mmgen
from mmgen.errors import DataError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]
PLACE = "runs/toy/default/seed-0"
WEIGHTS = "steps/first/weights.safetensors"
GENERATOR = {"type": "any_order", "max_tokens": 14}


def written(folder, **changes):
    steps = {"first": {"inputs": ["caption"], "train": ["backbone"]}}
    (folder / "toy.toml").write_text(recipe(**{"steps": steps, **changes}))
    done = mmgen_here(folder, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("any_order")


def test_gaps_are_filled_and_given_words_stay(folder, no_page):
    written(folder, generator={**GENERATOR})
    (line, *_) = map(json.loads, (folder / PLACE / "steps/first/generations.jsonl").read_text().splitlines())
    assert line[0]["passes"][-1] == line[0]["text"] and "[MASK]" not in line[0]["text"]

    query = ("generate", PLACE, "--caption", "a red dog")
    filled = mmgen_here(folder, *query, "--input", "text=what [MASK] [MASK] the dog?")
    assert filled.returncode == 0, filled.stderr
    text = filled.stdout.splitlines()[-1].split(maxsplit=1)[1]
    assert text.startswith("what") and text.endswith("the dog?")
    refused = mmgen_here(folder, *query, "--input", "text=what")
    assert refused.stderr.splitlines()[-1] == (
        "error: text and caption: 'text' has no gap ('what'); write [MASK] for each token to fill in"
    )
    beams = mmgen_here(folder, *query, "--set", "decoding.num_beams=2")
    assert "decoding.num_beams: no such key; the keys are: steps, order," in beams.stderr

    run = mmgen.load(folder / PLACE)
    queries = [{"caption": "a red dog", "text": "[MASK] is the dog?"}, {"caption": "a red dog"}]
    first, second = run.ask_all(queries)
    assert first.value.endswith("is the dog?") and second.value == run.ask({"caption": "a red dog"}).value
    several = run.ask({"caption": "a red dog", "text": "what [MASK] [MASK]?"}, n=3).texts
    assert len({text.text for text in several}) == 3 and all(text.text.startswith("what") for text in several)
    with pytest.raises(DataError, match="'text' must be a string"):
        run.ask({"caption": "a red dog", "text": 3})


def test_a_step_starts_from_weights_of_the_masked_generator(tmp_path, no_page):
    written(tmp_path, generator={"type": "masked", "max_tokens": 14})
    assert mmgen_here(tmp_path, "export", PLACE, "masked").returncode == 0
    trained = load_file(tmp_path / PLACE / WEIGHTS)
    refused = mmgen_here(tmp_path, "generate", PLACE, "--caption", "a dog", "--input", "text=a [MASK]")
    assert "unknown input 'text'; available: caption" in refused.stderr
    steps = {
        "first": {
            "inputs": ["caption"],
            "train": ["backbone"],
            "start": "export:masked",
            "training": {"learning_rate": 1e-12},
        }
    }
    (tmp_path / "toy.toml").write_text(recipe(name="order", generator={**GENERATOR}, steps=steps))
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    started = load_file(tmp_path / "runs/order/default/seed-0" / WEIGHTS)
    assert {*started} - {*trained} == {
        f"generator.length_head.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")
    }
    assert all(torch.allclose(started[name], trained[name], atol=1e-6) for name in trained)
