"""Which encoders of transformers mmgen's attention function reaches, found by what their classes do."""

from __future__ import annotations

import copy
import inspect
from typing import Any, cast

import torch
from transformers import AutoModelForMaskedLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto import MODEL_FOR_MASKED_LM_MAPPING

from . import ATTENTION
from .attention import KEYWORD, AttentionCall, register

LENGTH = 3  # slots of the row that is tried
MIXES = "its slots mix outside attention (neighbouring words, convolutions), where mmgen's rule does not reach"


def unreachable(sizes: PreTrainedConfig) -> str:
    """Why mmgen's attention function does not reach an encoder with this config of transformers; empty if it does.

    A model of these sizes, whose tensors have no values, encodes a row of embeddings, and its attention is watched.
    """
    if type(sizes) not in MODEL_FOR_MASKED_LM_MAPPING:
        return "it has no masked-language model in transformers"
    if sizes.is_encoder_decoder:
        return "it has a decoder"
    if parts := [name for name in sizes.sub_configs if getattr(sizes, name, None) is not None]:
        return f"it consists of several models ({', '.join(parts)})"
    model_class = cast("type[PreTrainedModel]", MODEL_FOR_MASKED_LM_MAPPING[type(sizes)])
    if not model_class._can_set_attn_implementation():
        return "its attention is computed by its own code, not through transformers' AttentionInterface"
    accepts = inspect.signature(model_class.forward).parameters
    if absent := [name for name in ("inputs_embeds", "position_ids") if name not in accepts]:
        return f"it takes no {absent[0]}, and mmgen hands encoders embeddings and positions"
    if getattr(sizes, "trigram_input", False):  # MobileBERT's embeddings read the words on both sides
        return MIXES
    try:
        with torch.device("meta"):
            model = AutoModelForMaskedLM.from_config(copy.deepcopy(sizes), dtype=torch.float32)
    except Exception:  # of impossible sizes, which are reported when the weights are counted
        return ""
    return _attention_problem(model)


def _attention_problem(model: PreTrainedModel) -> str:
    calls: list[bool] = []

    class Watched(AttentionCall):
        def within(self, width: int | None) -> torch.Tensor:
            calls.append(True)
            return super().within(width)

    register()
    model.set_attn_implementation(ATTENTION)
    with torch.device("meta"), torch.no_grad():
        positions = torch.zeros(1, LENGTH, dtype=torch.long)
        seen = torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool)
        words: Any = model.get_input_embeddings()
        states = torch.zeros(1, LENGTH, words.embedding_dim)
    try:
        with torch.no_grad():
            model.base_model(
                inputs_embeds=states, position_ids=positions, **{KEYWORD: Watched(seen, positions, positions)}
            )
    except Exception:  # whatever a class raises that needs more than this
        return (
            "its code cannot encode a row from embeddings and positions alone, or keeps mmgen's layout from attention"
        )
    return "" if calls else "it has no attention that transformers' AttentionInterface reaches"
