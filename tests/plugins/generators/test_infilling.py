"""Gaps in partly written texts, from the command line and from Python."""

import json

import pytest
from kit.toys import mmgen_here, recipe

import mmgen

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]
PLACE = "runs/toy/default/seed-0"


def test_gaps_are_filled_and_given_words_stay(tmp_path, no_page):
    steps = {"first": {"inputs": ["caption"], "train": ["backbone"]}}
    generator = {"type": "any_order", "max_tokens": 14}
    (tmp_path / "toy.toml").write_text(recipe(steps=steps, generator=generator))
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    (line, *_) = map(json.loads, (tmp_path / PLACE / "steps/first/generations.jsonl").read_text().splitlines())
    assert line[0]["passes"][-1] == line[0]["text"] and "[MASK]" not in line[0]["text"]
    query = ("generate", PLACE, "--caption", "a red dog")
    filled = mmgen_here(tmp_path, *query, "--input", "text=what [MASK] [MASK] the dog?")
    text = filled.stdout.splitlines()[-1].split(maxsplit=1)[1]
    assert text.startswith("what") and text.endswith("the dog?")
    refused = mmgen_here(tmp_path, *query, "--input", "text=what")
    assert refused.stderr.splitlines()[-1] == (
        "error: text and caption: 'text' has no gap ('what'); write [MASK] for each token to fill in"
    )
    run = mmgen.load(tmp_path / PLACE)
    first, second = run.ask_all([{"caption": "a red dog", "text": "[MASK] is the dog?"}, {"caption": "a red dog"}])
    assert first.value.endswith("is the dog?") and second.value == run.ask({"caption": "a red dog"}).value
    several = run.ask({"caption": "a red dog", "text": "what [MASK] [MASK]?"}, n=3).texts
    assert len({text.text for text in several}) == 3 and all(text.text.startswith("what") for text in several)
