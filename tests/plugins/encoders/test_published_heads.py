"""Published encoders whose head is missing, half there, or not tied as their config says; runs that start from them."""

import logging

import pytest
import torch
from kit import archives, toys
from mmgen_encoders import AnyEncoder, Bert, Roberta
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM

import mmgen
from mmgen.errors import DataError
from mmgen.storage.weights import state

pytestmark = pytest.mark.slow

FAMILIES = {
    "bert": (archives.bert, Bert),
    "roberta": (archives.roberta, Roberta),
    "modernbert": (archives.modernbert, AnyEncoder),
}
PAIRS = [
    ("bert", "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
    ("bert", "cls.predictions.decoder.bias", "cls.predictions.bias"),
    ("roberta", "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"),
    ("roberta", "lm_head.decoder.bias", "lm_head.bias"),
    ("modernbert", "decoder.weight", "model.embeddings.tok_embeddings.weight"),
]
IDS = torch.tensor([[5, 9, 7, 8]])


@pytest.fixture
def published(tmp_path):
    def make(family):
        folder = FAMILIES[family][0](tmp_path / family)
        return folder, load_file(folder / "model.safetensors")

    return make


def build(folder, tensors):
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return FAMILIES[folder.name][1](weights=str(folder)).build()


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_a_head_is_new_if_all_of_it_is_missing_and_refused_if_some_is(family, published, caplog):
    folder, tensors = published(family)
    front = AutoModelForMaskedLM.from_pretrained(folder).base_model_prefix + "."
    head = [name for name in tensors if not name.startswith(front)]
    for name in head:
        with pytest.raises(DataError) as error:
            build(folder, {other: tensor for other, tensor in tensors.items() if other != name})
        start = f"backbone.weights: '{folder}': the masked-LM head is only half there: '{name}' is missing, but '"
        assert str(error.value).startswith(start) and "\n" not in str(error.value)
    with caplog.at_level(logging.INFO, "mmgen.learning"):
        build(folder, {name: tensor for name, tensor in tensors.items() if name not in head})
    assert "has no masked-LM head" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO, "mmgen.learning"):
        build(folder, tensors)
    assert not caplog.text


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_pooler_is_new_if_all_of_it_is_missing_and_refused_if_some_is(family, published, caplog):
    folder, tensors = published(family)
    front = f"{family}.pooler.dense"
    pooler = {f"{front}.weight": torch.randn(16, 16), f"{front}.bias": torch.randn(16)}
    backbone = build(folder, tensors | pooler)
    backbone.add_pooler()
    assert torch.equal(backbone.pooler.dense.bias, pooler[f"{front}.bias"])
    for absent in ("weight", "bias"):
        backbone = build(folder, {n: t for n, t in (tensors | pooler).items() if n != f"{front}.{absent}"})
        with pytest.raises(DataError, match=f"the pooler is only half there: 'pooler.dense.{absent}' is missing, but"):
            backbone.add_pooler()
    with caplog.at_level(logging.INFO, "mmgen.learning"):
        build(folder, tensors).add_pooler()
    assert "has no pooler; a new pooler is created" in caplog.text


@pytest.mark.parametrize("family, second, first", PAIRS)
def test_a_tied_pair_that_differs_is_said_kept_and_built_again(family, second, first, published, tmp_path, caplog):
    folder, tensors = published(family)
    with caplog.at_level(logging.INFO, "mmgen.learning"):
        backbone = build(folder, tensors | {second: tensors[first] + 1})
    assert f"{first} and {second} should be one tensor, but differ in these weights" in caplog.text
    assert torch.equal(backbone.model.get_parameter(second), backbone.model.get_parameter(first) + 1)
    (tmp_path / "saved").mkdir()
    backbone.save(tmp_path / "saved")
    again = backbone.config.build(folder=tmp_path / "saved")
    assert state(again).keys() == state(backbone).keys()
    again.load_state_dict(state(backbone))
    states = torch.randn(2, 16)
    torch.testing.assert_close(again.logits(states), backbone.logits(states))
    theirs = AutoModelForMaskedLM.from_pretrained(folder).eval()
    states = theirs.base_model(IDS).last_hidden_state
    torch.testing.assert_close(backbone.eval().logits(states[0]), theirs(IDS).logits[0], atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("no_page")
def test_a_run_from_an_untied_head_is_read_again(published, tmp_path):
    folder, tensors = published("bert")
    pairs = [(second, first) for name, second, first in PAIRS if name == "bert"]
    save_file(tensors | {second: tensors[first] + 0.1 for second, first in pairs}, folder / "model.safetensors")
    steps = {"first": {"inputs": ["caption"], "train": ["backbone"]}}
    keys = {"weights": str(folder), **dict.fromkeys(("num_hidden_layers", "hidden_size", "num_attention_heads"))}
    (tmp_path / "toy.toml").write_text(toys.recipe(backbone=keys, steps=steps))
    done = toys.mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    run = mmgen.load(tmp_path / toys.PLACE)
    trained = run.model.backbone.model
    assert not any(torch.equal(trained.get_parameter(a), trained.get_parameter(b)) for a, b in pairs)
    theirs = AutoModelForMaskedLM.from_pretrained(run.save(tmp_path / "export", transformers=True) / "backbone")
    for name, parameter in trained.named_parameters():
        assert torch.equal(theirs.get_parameter(name), parameter), name
