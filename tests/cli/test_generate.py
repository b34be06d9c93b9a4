"""`mmgen generate`: what the terminal shows, and a command without input."""

import pytest
import torch
from click.testing import CliRunner
from kit import toys

from mmgen.cli.generate import _print_texts, generate
from mmgen.decoding import Decoding
from mmgen.errors import DataError
from mmgen.inference import load as loading
from mmgen.inference.load import search_options
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
    monkeypatch.setattr(loading, "check_query", lambda *_, **__: lambda query: None)
    return predictor


@pytest.mark.parametrize("sets", [[], ["--set", "decoding.num_beams=2"]])
def test_the_limit_of_texts_is_that_of_python(tmp_path, writing, sets):
    for n, message in (("300", "n is 300, but must be at most 100"), ("0", "n must be a positive integer")):
        result = CliRunner().invoke(generate, [str(tmp_path), "--caption", "a dog", "--n", n, *sets])
        assert isinstance(result.exception, DataError) and str(result.exception) == message
    assert "1 to 100" in CliRunner().invoke(generate, ["--help"]).stdout


def test_two_numbers_of_texts_are_refused(writing):
    with pytest.raises(DataError) as error:
        search_options(writing, 3, ["decoding.num_return_sequences=1"])
    assert str(error.value) == "n and num_return_sequences both set the number of texts; give one or the other"


def test_an_override_has_the_limit_too(writing):
    decoding = Decoding(do_sample=True, num_return_sequences=300)
    writing.recipe = writing.recipe.model_copy(update={"decoding": decoding})
    with pytest.raises(DataError) as error:
        search_options(writing, None, ["decoding.num_return_sequences=300"])
    assert str(error.value) == "num_return_sequences is 300, but must be at most 100"
