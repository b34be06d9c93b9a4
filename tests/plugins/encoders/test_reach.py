"""Encoders that mmgen's attention function does not reach: one line with the reason, before anything is loaded."""

import json
from pathlib import Path

import pytest
from kit.refusals import refusal
from mmgen_encoders import AnyEncoder, Bert
from mmgen_encoders.self_check import MIXES, OWN_CODE, unreachable
from transformers import AutoConfig
from transformers.models.auto import CONFIG_MAPPING

from mmgen.errors import DataError

REASONS = {
    **dict.fromkeys(("deberta-v2", "convbert", "mpnet", "luke", "rembert", "roformer", "megatron-bert"), OWN_CODE),
    **dict.fromkeys(("fnet", "bart", "xmod", "neomme", "esmc"), OWN_CODE),
    "llama": "it has no masked-language model in transformers",
    "modernvbert": "it consists of several models (text_config, vision_config)",
    "mobilebert": MIXES,
}
QUICK = ("deberta-v2", "fnet", "bart", "llama", "mobilebert")


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=() if family in QUICK else (pytest.mark.slow, pytest.mark.exhaustive))
        for family in REASONS
    ],
)
def test_every_family_has_its_reason(family):
    if family not in CONFIG_MAPPING:
        pytest.skip(f"the installed transformers has no {family}")
    sizes = AutoConfig.for_model(family)
    sizes.num_hidden_layers = 1
    assert unreachable(sizes).startswith(REASONS[family])


def folder_of(tmp_path: Path, **values) -> Path:
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder/config.json").write_text(json.dumps(values))
    return tmp_path / "encoder"


def test_the_config_alone_is_read(tmp_path):
    folder = folder_of(tmp_path, model_type="deberta-v2", num_hidden_layers=1, hidden_size=24, vocab_size=50)
    message = refusal(AnyEncoder(weights=str(folder)).build)
    assert message == (
        f"backbone.weights: '{folder}': mmgen cannot use the encoder 'deberta-v2': {OWN_CODE}; choose another encoder"
    )


def test_weights_of_another_family_are_a_line(tmp_path):
    folder = folder_of(tmp_path, model_type="modernbert")
    with pytest.raises(DataError, match=f"backbone 'bert': '{folder}' is a modernbert checkpoint; use weights"):
        Bert(weights=str(folder)).build()
