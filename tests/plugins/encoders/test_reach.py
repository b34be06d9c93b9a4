"""Encoders that mmgen's attention function does not reach: one line with the reason, before anything is loaded."""

import json
from pathlib import Path

import pytest
from kit import toys
from mmgen_encoders import AnyEncoder, Bert
from mmgen_encoders.reach import MIXES, unreachable
from transformers import AutoConfig, AutoModelForMaskedLM, BertConfig, MobileBertConfig
from transformers.models.auto import CONFIG_MAPPING

from mmgen.errors import DataError

OWN_CODE = "its attention is computed by its own code, not through transformers' AttentionInterface"
REASONS = {
    **dict.fromkeys(("deberta-v2", "convbert", "mpnet", "luke", "rembert", "roformer", "megatron-bert"), OWN_CODE),
    "fnet": "it has no attention that transformers' AttentionInterface reaches",
    "bart": "it has a decoder",
    "llama": "it has no masked-language model in transformers",
    "xmod": "its code cannot encode a row from embeddings and positions alone",
}
NEW = {  # of newer versions of transformers
    "neomme": "it takes no inputs_embeds, and mmgen hands encoders embeddings and positions",
    "esmc": "it takes no inputs_embeds, and mmgen hands encoders embeddings and positions",
    "modernvbert": "it consists of several models (text_config, vision_config)",
}


@pytest.mark.parametrize("family", ["deberta-v2", "fnet", "bart", "llama", "neomme"])
def test_a_family_has_its_reason(family):
    check_reason(family)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("family", [*REASONS, *NEW])
def test_every_family_has_its_reason(family):
    check_reason(family)


def check_reason(family):
    if family not in CONFIG_MAPPING:
        pytest.skip(f"the installed transformers has no {family}")
    sizes = AutoConfig.for_model(family)
    sizes.num_hidden_layers = 1
    assert unreachable(sizes).startswith((REASONS | NEW)[family])


def folder_of(tmp_path: Path, **values) -> Path:
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder/config.json").write_text(json.dumps(values))
    return tmp_path / "encoder"


def checked(tmp_path, backbone) -> str:
    (tmp_path / "toy.toml").write_text(toys.recipe(backbone=backbone))
    done = toys.mmgen_here(tmp_path, "check", "toy.toml")
    assert done.returncode == 1
    return "".join(line for line in done.stderr.splitlines(True) if "has no effect" not in line)


def test_check_reads_the_config_alone(tmp_path):
    folder = folder_of(tmp_path, model_type="deberta-v2", num_hidden_layers=1, hidden_size=24, vocab_size=50)
    assert checked(tmp_path, {"type": "encoder", "weights": str(folder)}).removeprefix("error: ") == (
        f"toy.toml:7: backbone.weights: '{folder}': mmgen cannot use the encoder 'deberta-v2': {OWN_CODE}; choose "
        "another encoder\n"
    )


def test_check_finds_embeddings_that_read_neighbouring_words(tmp_path):
    """Published MobileBERTs; without such embeddings the family is reached."""
    folder = folder_of(tmp_path, model_type="mobilebert", num_hidden_layers=1, vocab_size=50)
    assert checked(tmp_path, {"type": "encoder", "weights": str(folder)}).removeprefix("error: ") == (
        f"toy.toml:7: backbone.weights: '{folder}': mmgen cannot use the encoder 'mobilebert': {MIXES}; choose another "
        "encoder\n"
    )
    assert unreachable(MobileBertConfig(num_hidden_layers=1, vocab_size=50, trigram_input=False)) == ""


def test_check_names_the_type_that_has_a_path_of_its_own(tmp_path):
    message = checked(tmp_path, {"type": "encoder", "family": "squeezebert"})
    assert f"backbone.family: mmgen cannot use the encoder 'squeezebert': {OWN_CODE}; set backbone.type = " in message
    assert '"squeezebert"' in message


def test_check_names_the_family_of_weights(tmp_path):
    folder = folder_of(tmp_path, model_type="modernbert")
    message = checked(tmp_path, {"type": "bert", "weights": str(folder)})
    assert f"""backbone.weights: '{folder}' is a modernbert checkpoint; set backbone.type = "encoder\"""" in message


def test_a_family_that_transformers_lacks_names_the_version(tmp_path):
    folder = folder_of(tmp_path, model_type="tomorrowbert", transformers_version="9.1.0")
    with pytest.raises(
        DataError, match="has no family 'tomorrowbert'; config.json was written by transformers 9.1.0, s"
    ):
        AnyEncoder(weights=str(folder)).build()


def test_a_wrong_model_is_a_line(tmp_path, monkeypatch):
    """Published weights whose model does what mmgen does not know."""
    backbone = Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=2, vocab_size=60).build(["a word"])
    backbone.save(tmp_path)
    sizes = BertConfig.from_pretrained(tmp_path)
    AutoModelForMaskedLM.from_config(sizes).save_pretrained(tmp_path)
    AnyEncoder(weights=str(tmp_path)).build()
    monkeypatch.setattr("mmgen_encoders.any_encoder.AnyEncoderBackbone._first_position", lambda self: 3)
    with pytest.raises(DataError) as error:
        AnyEncoder(weights=str(tmp_path)).build()
    assert str(error.value).startswith(
        f"backbone.weights: '{tmp_path}': mmgen cannot use the encoder 'bert': through mmgen its logits differ from "
        "its own by up to "
    )
