"""Steps that start from published weights: the tensors that parts take, and the message about the rest."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from kit import toys
from kit.training import RecordedProgress, sigterm_before
from safetensors.torch import load_file
from transformers import BertConfig, BertForPreTraining

from mmgen.data.datasets import Datasets
from mmgen.errors import DataError
from mmgen.runs.run import run
from mmgen.runs.start_from_weights import load_start
from mmgen.storage.model_files import build_model
from mmgen.storage.weights import state

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]

RECIPE = toys.recipe(
    backbone={"hidden_size": 16},
    inputs={"caption": {"type": "text"}, "second": {"type": "text"}},
    objectives={"fits": {"type": "sentence_image"}},
    training={"batch_size": 4, "checkpoint_every": 1, "epochs": 2},
    steps={
        "pre": {
            "inputs": ["caption", "second"],
            "train": ["caption"],
            "objectives": ["fits"],
            "start": "weights:bert.bin",
            "evaluate": False,
        },
        "write": {"inputs": ["caption"], "train": ["backbone"], "start": "pre"},
    },
    data={"train_size": 8, "test_size": 4},
    metrics=None,
)
SHAPE = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)


@pytest.fixture(scope="module")
def published_bert(tmp_path_factory):
    """A recipe, its model, and a BERT for pretraining of its sizes, published in bert.bin."""
    folder = tmp_path_factory.mktemp("start")
    recipe = toys.loaded(folder, RECIPE)
    model = build_model(recipe, Datasets(recipe))
    torch.manual_seed(1)
    words = len(model.backbone.tokenizer)
    theirs = BertForPreTraining(BertConfig(vocab_size=words, **SHAPE))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)  # norms of ones would not show
    torch.save(theirs.state_dict(), folder / "bert.bin")
    return folder, model


@pytest.fixture
def place(published_bert, tmp_path, monkeypatch):
    """A separate folder with the recipe and the weights."""
    for name in ("toy.toml", "bert.bin"):
        shutil.copy(published_bert[0] / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def started(model, start: str = "weights:bert.bin"):
    """The message of a run about its start, and the names of the tensors that the step then takes."""
    recipe = toys.loaded(Path(), RECIPE.replace('"weights:bert.bin"', json.dumps(start)))
    heard = RecordedProgress()
    return heard.lines, load_start(recipe, "pre", model, heard)


def refused(model, start: str, kind=DataError) -> str:
    with pytest.raises(kind) as error:
        started(model, start)
    assert "\n" not in str(error.value) and error.value.about == ("steps", "pre", "start")
    return str(error.value)


def fresh(model) -> dict:
    return {name: tensor.clone() for name, tensor in state(model).items()}


def test_parts_take_what_is_theirs_and_the_rest_is_named(published_bert, place):
    _, model = published_bert
    with torch.no_grad():
        for tensor in state(model).values():
            tensor.add_(1)  # so that what another test has loaded is not taken for this one's
    before, theirs = fresh(model), torch.load("bert.bin")
    (line,), loaded = started(model)
    assert line == (
        "pre: weights:bert.bin: 30 of 32 tensors taken; left over 2 (cls.seq_relationship.weight, "
        "cls.seq_relationship.bias); as built 2 (objectives.fits.head.weight, objectives.fits.head.bias)"
    )
    now = state(model)
    assert torch.equal(now["backbone.pooler.dense.weight"], theirs["bert.pooler.dense.weight"])
    assert all(torch.equal(now[name], before[name]) == (name not in loaded) for name in now)


def test_weights_of_another_width_are_refused_with_the_recipes_line(published_bert, place):
    _, model = published_bert
    theirs = torch.load("bert.bin")
    words = theirs["bert.embeddings.word_embeddings.weight"].shape
    torch.save({name: torch.zeros(*tensor.shape, 2).flatten(-2) for name, tensor in theirs.items()}, "wide.bin")
    said = refused(model, "weights:wide.bin")
    assert said.startswith("'wide.bin': backbone: ")
    assert (
        f"'model.bert.embeddings.word_embeddings.weight' has shape ({words[0]}, 32), but "
        f"backbone.model.bert.embeddings.word_embeddings.weight has shape ({words[0]}, 16); set the sizes" in said
    )


def test_a_run_that_goes_on_needs_the_file_no_more_and_two_are_equal(place):
    recipe = toys.loaded(Path(), RECIPE)
    uninterrupted = run(recipe.model_copy(update={"output": "whole"}), only=("pre",))
    with sigterm_before(2), pytest.raises(KeyboardInterrupt):
        run(recipe.model_copy(update={"output": "stopped"}), only=("pre",))
    step = place / "stopped/toy/default/seed-0/steps/pre"
    assert {path.name for path in step.iterdir()} == {"checkpoint.safetensors", "log.jsonl"}
    theirs = torch.load("bert.bin")["bert.embeddings.word_embeddings.weight"]
    Path("bert.bin").unlink()
    run(recipe.model_copy(update={"output": "stopped"}), only=("pre",))
    first, second = (load_file(folder / "weights.safetensors") for folder in (uninterrupted.step("pre"), step))
    assert first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)
    assert torch.equal(first["backbone.model.bert.embeddings.word_embeddings.weight"], theirs)
