"""Which encoders of transformers mmgen's attention function reaches, found by what their classes do."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import AutoModelForMaskedLM, PreTrainedConfig
from transformers.models.auto import MODEL_FOR_MASKED_LM_MAPPING

from .attention import ATTENTION, KEYWORD, AttentionCall, register

LENGTH = 3  # slots of the row that is tried
OWN_CODE = (
    "its attention is computed by its own code, not through transformers' AttentionInterface, or it cannot encode a "
    "row from embeddings and positions alone"
)
MIXES = "its slots mix outside attention (neighbouring words, convolutions), where mmgen's rule does not reach"


def unreachable(sizes: PreTrainedConfig) -> str:
    """Why mmgen's attention function does not reach an encoder with this config of transformers; empty if it does.

    A model of these sizes, whose tensors have no values, encodes a row of embeddings, and its attention is watched.
    """
    if type(sizes) not in MODEL_FOR_MASKED_LM_MAPPING:
        return "it has no masked-language model in transformers"
    if parts := [name for name in sizes.sub_configs if getattr(sizes, name, None) is not None]:
        return f"it consists of several models ({', '.join(parts)})"
    if getattr(sizes, "trigram_input", False):  # MobileBERT's embeddings read the words on both sides
        return MIXES
    register()
    try:
        with torch.device("meta"), torch.no_grad():
            model = AutoModelForMaskedLM.from_config(copy.deepcopy(sizes), attn_implementation=ATTENTION)
            words: Any = model.get_input_embeddings()
            positions = torch.zeros(1, LENGTH, dtype=torch.long)
            call = AttentionCall(torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool), positions, positions)
            states = torch.zeros(1, LENGTH, words.embedding_dim)
            model.base_model(inputs_embeds=states, position_ids=positions, **{KEYWORD: call})
    except Exception:  # whatever a class raises that needs more than this
        return OWN_CODE
    return "" if call.layers else OWN_CODE
