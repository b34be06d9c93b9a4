"""Encoders from folders: their code is not run, and impossible sizes are refused."""

import json
import re
from pathlib import Path

import pytest
import torch
from kit.refusals import copied_run, refusal
from mmgen_encoders import Bert
from transformers import AutoConfig, AutoModelForMaskedLM

import mmgen
from mmgen.errors import DataError, PluginError
from mmgen.testing import TEXTS

pytestmark = pytest.mark.slow


@pytest.fixture
def saved(tmp_path) -> Path:
    return copied_run(tmp_path)


def test_code_that_an_encoders_folder_brings_is_not_run(saved, tmp_path):
    """In a run's folder, and in one that `backbone.weights` names."""
    config = saved / "backbone/config.json"
    (saved / "backbone/evil.py").write_text(f"import pathlib; pathlib.Path({str(tmp_path / 'mark')!r}).touch()\n")
    auto = {name: f"evil.{name}" for name in ("AutoConfig", "AutoModelForMaskedLM", "AutoTokenizer")}
    config.write_text(json.dumps({**json.loads(config.read_text()), "auto_map": auto}))
    mmgen.load(saved)
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "evil"}))
    assert f"{config}: damaged" in refusal(mmgen.load, saved)
    assert "cannot be loaded" in refusal(Bert(weights=str(config.parent)).build)
    assert not (tmp_path / "mark").exists()


def test_a_path_where_nothing_is_is_no_hub_name(tmp_path):
    for weights in ("../nothing/backbone", str(tmp_path / "nothing"), "a/b/c"):
        wrong = (
            f"backbone.weights: '{weights}': no such folder; a path in a recipe is relative to the recipe's folder, a "
            "path of --set to the current folder"
        )
        assert refusal(Bert(weights=weights).build) == wrong
        Bert(weights=weights).check_weights()  # `mmgen check` passes: weights of one profile need not be there


def test_an_encoder_larger_than_the_machine_is_refused_before_it_takes_memory(saved):
    """Sizes that are possible one by one, but not together: in a recipe, and in the folder of `backbone.weights`."""
    why = r"its weights need [\d,]+ GB, but this machine has [\d,]+ GB of memory"
    message = refusal(Bert(num_hidden_layers=50, hidden_size=90_000, num_attention_heads=4).build, ["a word"])
    assert re.fullmatch(
        rf"backbone 'bert': {why}; make backbone.num_hidden_layers or backbone.hidden_size smaller", message
    )
    config = saved / "backbone/config.json"
    config.write_text(
        json.dumps(
            {
                **json.loads(config.read_text()),
                "hidden_size": 90_000,
                "intermediate_size": 900_000,
                "num_hidden_layers": 50,
            }
        )
    )
    assert re.search(
        rf"backbone.weights: '{config.parent}' cannot be loaded \({why}\)",
        refusal(Bert(weights=str(config.parent)).build),
    )


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("num_hidden_layers", 0, "num_hidden_layers must be a whole number from 1 to 1000, not 0"),
        ("num_hidden_layers", 10**9, "(num_hidden_layers must be a whole number from 1 to 1000, not 1000000000)"),
        ("num_labels", 10**6 + 1, "(num_labels must be a whole number from 1 to 1000000, not 1000001)"),
        ("max_position_embeddings", -1, "max_position_embeddings must be a whole number from 1 to 10000000, not -1"),
        ("layer_norm_eps", "x", "(Field 'layer_norm_eps' expected float, got str (value: 'x'))"),
        ("hidden_act", "gelv", "(hidden_act = 'gelv' is not an activation of transformers; did you mean 'gelu'?)"),
        ("hidden_act", "zzzz", "(hidden_act = 'zzzz' is not an activation of transformers)"),
        ("pad_token_id", 10**9, "(pad_token_id = 1000000000 is outside the vocabulary of "),
        ("pad_token_id", -1, "(pad_token_id = -1 is outside the vocabulary of "),
        ("type_vocab_size", 1, "of the weights differ (bert.embeddings.token_type_embeddings.weight); use a config"),
    ],
)
def test_a_config_that_no_encoder_can_have_is_a_line(saved, key, value, expected):
    """Of a folder that `backbone.weights` names."""
    folder = saved / "backbone"
    config = json.loads((folder / "config.json").read_text())
    AutoModelForMaskedLM.from_config(AutoConfig.for_model(**config)).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({**config, key: value}))
    message = refusal(Bert(weights=str(folder)).build)
    assert message.startswith(f"backbone.weights: '{folder}'") and expected in message


def test_rows_of_any_length_whatever_pieces_a_config_asks_for(saved):
    """transformers would refuse a row that is not a multiple of them."""
    import torch

    folder = saved / "backbone"
    config = json.loads((folder / "config.json").read_text())
    AutoModelForMaskedLM.from_config(AutoConfig.for_model(**config)).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({**config, "chunk_size_feed_forward": 7}))
    words = torch.ones(1, 5, dtype=torch.long)
    assert Bert(weights=str(folder)).build().model(words).logits.shape[:2] == (1, 5)


def of_family(family: str, **members) -> Bert:
    """A small config of an encoder of another family, by name."""

    class Other(Bert):
        """Another family."""

        model_type = family
        narrows = False
        caches = False

    return Other(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, vocab_size=60, **members)


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("bertt", "transformers has no family 'bertt'; did you mean 'bert'?; set model_type of the config class"),
        ("bart", "transformers' 'bart' has a decoder; choose an encoder"),
        ("llama", "transformers' 'llama' has no masked-language model; choose an encoder"),
    ],
)
def test_a_family_that_is_no_encoder_is_a_line(family, words):
    with pytest.raises(DataError) as error:
        of_family(family).build(texts=TEXTS)
    assert str(error.value) == f"backbone 'bert': {words}"


def test_lists_with_one_value_for_each_layer_follow_the_number_of_layers():
    """ModernBERT's layer_types have 22 values as published. Its head is not found by name."""
    with pytest.raises(PluginError) as error:
        of_family("modernbert").build(texts=TEXTS).logits(torch.zeros(1, 32))
    assert "no masked-language-model head found in ModernBertForMaskedLM; override EncoderBackbone.logits" in str(
        error.value
    )
    sizes = of_family("modernbert").build(texts=TEXTS).model.config
    assert sizes.layer_types == ["full_attention", "sliding_attention"] and sizes.num_hidden_layers == 2
