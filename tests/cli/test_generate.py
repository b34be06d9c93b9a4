"""`mmgen generate`: what the terminal shows, and a command without input."""

import json
import re

import pytest
import torch
from click.testing import CliRunner
from kit import small_runs, toys
from PIL import Image

from mmgen.cli import main
from mmgen.cli.generate import _print_texts, generate
from mmgen.errors import DataError
from mmgen.inference import load as loading
from mmgen.inference.predictor import Predictor
from mmgen.model import compose
from mmgen.recipe.load import load
from mmgen.registry import installed


def test_texts_have_scores_kinds_and_prompts(capsys):
    texts = [
        {"text": "what is it ?", "score": -0.5, "prompt": "form: what"},
        {"text": "is it red ?", "score": 12.25, "score_kind": "confidence"},
    ]
    _print_texts({"id": "a.jpg", "texts": texts}, "text")
    assert capsys.readouterr().out.splitlines() == [
        "a.jpg",
        "     -0.50  what is it ?  (form: what)",
        "     12.25 (confidence)  is it red ?",
    ]


def test_a_query_that_cannot_be_read_is_skipped(capsys):
    _print_texts({"id": "a.jpg", "error": "a.jpg: no such file"}, "text")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a.jpg\n", "    skipped: a.jpg: no such file\n")


def test_a_command_without_input(tmp_path):
    done = toys.mmgen_here(tmp_path, "generate", "run")
    message = "error: no input; give a picture, a folder, a table, a JSONL file, --input NAME=VALUE, or --caption\n"
    assert (done.returncode, done.stderr) == (1, message)


@pytest.fixture
def writing(tmp_path, monkeypatch):
    """A predictor of texts, in place of a run's."""
    steps = {"words": {"inputs": ["caption"], "train": ["backbone"]}}
    (tmp_path / "toy.toml").write_text(toys.recipe(inputs={"caption": {"type": "text"}}, steps=steps))
    recipe = load(tmp_path / "toy.toml", installed())[0]
    torch.manual_seed(0)
    model = compose(recipe.backbone, recipe.inputs, recipe.generator, texts=["a red dog barks"] * 3)
    predictor = Predictor(model, recipe, "words")
    monkeypatch.setattr(loading, "load_for", lambda *_, **__: predictor)
    return predictor


@pytest.mark.parametrize("sets", [[], ["--set", "decoding.num_beams=2"]])
def test_the_limit_of_texts_is_that_of_python(tmp_path, writing, sets):
    for n in ("300", "0"):
        message = f"n must be a whole number from 1 to 100, not {n}"
        result = CliRunner().invoke(generate, [str(tmp_path), "--caption", "a dog", "--n", n, *sets])
        assert isinstance(result.exception, DataError) and str(result.exception) == message
    assert "1 to 100" in CliRunner().invoke(generate, ["--help"]).stdout


SAMPLED = ("--set", "decoding.do_sample=true", "--set", "decoding.num_beams=1", "--set", "decoding.temperature=3.0")


def texts_of(tmp_path, *arguments):
    """The texts by caption, and what the command says."""
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(main, ["generate", str(small_runs.drawn("writes")), *arguments, "--out", str(out)])
    assert done.exit_code == 0, done.output
    return {line["id"]: line["texts"][0]["text"] for line in map(json.loads, out.read_text().splitlines())}, done.output


def test_sampling_can_be_repeated_and_other_lines_change_nothing(tmp_path):
    lines = [json.dumps({"id": caption, "caption": caption}) for caption in ("a red dog", "two cats", "a tent")]
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    (tmp_path / "one.jsonl").write_text(json.dumps({"caption": "a tent"}))
    together, said = texts_of(tmp_path, str(tmp_path / "all.jsonl"), *SAMPLED, "--seed", "5")
    assert "sampled with seed 5; --seed 5 writes the same texts again" in said
    alone, _ = texts_of(tmp_path, str(tmp_path / "one.jsonl"), *SAMPLED, "--seed", "5")
    assert alone == {"one.jsonl:1": together["a tent"]} and len({*together.values()}) == 3
    drawn, said = texts_of(tmp_path, str(tmp_path / "one.jsonl"), *SAMPLED)
    (seed,) = re.findall(r"sampled with seed (\d+);", said)
    assert texts_of(tmp_path, str(tmp_path / "one.jsonl"), *SAMPLED, "--seed", seed)[0] == drawn != alone


def test_a_seed_without_effect_is_refused():
    run = str(small_runs.drawn("writes"))
    done = CliRunner().invoke(main, ["generate", run, "--caption", "a tent", "--seed", "5"])
    message = "error: --seed 5: has an effect only on a decoding that samples (do_sample = true); leave it out\n"
    assert (done.exit_code, done.output) == (1, message)


def test_a_folder_with_broken_pictures_says_how_many_and_where(tmp_path):
    (tmp_path / "pictures").mkdir()
    Image.new("RGB", (64, 64), "red").save(tmp_path / "pictures/red.png")
    (tmp_path / "pictures/broken.png").write_bytes(b"\x89PNG")
    (tmp_path / "pictures/empty.jpg").touch()
    out = tmp_path / "out.jsonl"
    run = str(small_runs.drawn("writes"))
    done = CliRunner().invoke(main, ["generate", run, str(tmp_path / "pictures"), "--caption", "x", "--out", str(out)])
    assert f'2 of 3 could not be answered; {out} has the reasons as "error"' in done.output
    assert sum("error" in json.loads(line) for line in out.read_text().splitlines()) == 2
    assert done.output.count("trained on drawn scenes; expect no sensible answer about anything else") == 1
