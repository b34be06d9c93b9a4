"""The command `mmgen predict`: how the terminal shows predictions."""

import json

import pytest
import torch
from click.testing import CliRunner
from kit import toys

from mmgen.cli.predict import _print_prediction, predict
from mmgen.inference import load as loading
from mmgen.inference.predictor import Predictor
from mmgen.model import Objectives, compose
from mmgen.recipe.load import load
from mmgen.registry import installed


def test_a_choice_is_shown_with_its_probabilities(capsys):
    value = {"choice": 2, "probabilities": [0.1, 0.2, 0.6, 0.1]}
    _print_prediction({"id": "e", "value": value, "score": 0.6}, "choice")
    assert capsys.readouterr().out.splitlines()[1:3] == ["     60.0%  2", "     20.0%  1"]


def test_a_choice_is_shown_by_its_text(capsys):
    value = {"choice": 1, "probabilities": [0.25, 0.75]}
    _print_prediction({"id": "e", "value": value, "score": 0.75, "choices": ["it runs", "it flies"]}, "choice")
    assert capsys.readouterr().out == "e\n     75.0%  it flies\n     25.0%  it runs\n"


@pytest.fixture
def comparing(tmp_path, monkeypatch):
    """A predictor that reads two texts, in place of a run's."""
    text = toys.recipe(
        inputs={"caption": {"type": "text"}, "second": {"type": "text"}},
        objectives={"truth": {"type": "true_or_false"}},
        steps={"truth": {"inputs": ["caption", "second"], "train": ["backbone"], "objectives": ["truth"]}},
        data={"type": "scene_pairs"},
        metrics={"overlap": {"type": "pair_accuracy"}},
    )
    (tmp_path / "toy.toml").write_text(text)
    recipe = load(tmp_path / "toy.toml", installed())[0]
    torch.manual_seed(0)
    texts, objectives = ["a red dog barks"] * 3, Objectives(recipe.objectives)
    model = compose(recipe.backbone, recipe.inputs, recipe.generator, texts=texts, objectives=objectives)
    predictor = Predictor(model, recipe, "truth")
    monkeypatch.setattr(loading, "load_for", lambda *_, **__: predictor)
    return predictor


def test_a_file_of_answers_has_the_remarks_and_the_terminal_the_first_of_them(tmp_path, comparing):
    (tmp_path / "ask.jsonl").write_text('{"second": "qq"}\n' * 5)  # a word unknown to the tokenizer
    arguments = [str(tmp_path), str(tmp_path / "ask.jsonl"), "--input", "caption=zz"]
    assert CliRunner().invoke(predict, arguments).stderr.count("not in the tokenizer's vocabulary") == 10
    out = tmp_path / "out.jsonl"
    result = CliRunner().invoke(predict, [*arguments, "--out", str(out)])
    assert result.stderr.count("not in the tokenizer's vocabulary") == 6
    assert f'and 4 more; {out} has all of them as "remarks"\n' in result.stderr
    assert [len(json.loads(line)["remarks"]) for line in out.read_text().splitlines()] == [2] * 5
