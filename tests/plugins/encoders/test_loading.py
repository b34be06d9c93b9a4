"""Encoders from folders: their code is not run, and impossible sizes are refused."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from kit import small_runs
from kit.refusals import refusal
from mmgen_encoders import AnyEncoder, Bert
from transformers import AutoConfig, AutoModelForMaskedLM

from mmgen.testing import TEXTS

pytestmark = pytest.mark.slow


@pytest.fixture
def saved(tmp_path) -> Path:
    return Path(shutil.copytree(small_runs.drawn("writes"), tmp_path / "run"))


def test_an_encoder_larger_than_the_machine_is_refused_before_it_takes_memory(saved):
    """Sizes that are possible one by one, but not together: in a recipe, and in the folder of `backbone.weights`."""
    why = r"its weights need [\d,]+ GB, but this machine has [\d,]+ GB of memory"
    message = refusal(Bert(num_hidden_layers=50, hidden_size=90_000, num_attention_heads=4).build, ["a word"])
    assert re.fullmatch(
        rf"backbone 'bert': transformers cannot build a 'bert' of these sizes \({why}\); change "
        "backbone.num_hidden_layers, hidden_size or num_attention_heads",
        message,
    )
    config = saved / "backbone/config.json"
    sizes = {"hidden_size": 90_000, "intermediate_size": 900_000, "num_hidden_layers": 50}
    config.write_text(json.dumps(json.loads(config.read_text()) | sizes))
    message = refusal(Bert(weights=str(config.parent)).build)
    assert re.search(rf"backbone.weights: '{config.parent}' cannot be loaded \({why}\)", message)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("num_hidden_layers", 10**9, "(num_hidden_layers must be a whole number from 1 to 1000, not 1000000000)"),
        ("max_position_embeddings", -1, "cannot be loaded (Trying to create tensor with negative dimension -1"),
        ("layer_norm_eps", "x", "Field 'layer_norm_eps' expected float, got str (value: 'x'))"),
        ("type_vocab_size", 1, "bert.embeddings.token_type_embeddings.weight is missing or has another size"),
        ("chunk_size_feed_forward", 7, ""),  # transformers would refuse a row that is not a multiple of it
    ],
)
def test_a_config_that_no_encoder_can_have_is_a_line(saved, key, value, expected):
    """Of a folder that `backbone.weights` names."""
    folder = saved / "backbone"
    config = json.loads((folder / "config.json").read_text())
    AutoModelForMaskedLM.from_config(AutoConfig.for_model(**config)).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({**config, key: value}))
    if expected:
        message = refusal(Bert(weights=str(folder)).build)
        assert message.startswith(f"backbone.weights: '{folder}'") and expected in message
    else:
        words = torch.ones(1, 5, dtype=torch.long)
        assert Bert(weights=str(folder)).build().model(words).logits.shape[:2] == (1, 5)


def test_a_family_that_transformers_lacks_is_a_line():
    message = refusal(AnyEncoder(family="bertt").build, TEXTS)
    assert message == "backbone 'encoder': transformers has no family 'bertt'; did you mean 'bert'?; choose another"


def test_lists_with_one_value_for_each_layer_follow_the_number_of_layers():
    """ModernBERT's layer_types have 22 values as published."""
    sizes = AnyEncoder(family="modernbert", num_hidden_layers=2, hidden_size=32).build(texts=TEXTS).model.config
    assert sizes.layer_types == ["full_attention", "sliding_attention"] and sizes.num_hidden_layers == 2
