"""An encoder is tried, not believed: whether mmgen's attention function reaches it, and whether it is the source's."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, PreTrainedConfig
from transformers.models.auto import MODEL_FOR_MASKED_LM_MAPPING

from mmgen.tensors import PAD, PREFIX, Layout, Slots

from .attention import ATTENTION, KEYWORD, AttentionCall, register
from .encoder import EncoderBackbone

SLOTS = 40  # that `difference_from_source` compares
CLOSE = 1e-3  # share of the largest logit; other kernels and orders of sums differ by less
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


@torch.no_grad()
def difference_from_source(backbone: EncoderBackbone) -> str:
    """How the backbone differs from the model that it holds, called by itself; empty if it does not.

    Compares the logits of 40 random slots of a plain row that is longer than every sliding window, and checks that
    slots which see only themselves do not depend on each other. Takes milliseconds for small
    encoders, and leaves the backbone in eval mode.
    """
    backbone.eval()
    return _plain_row_problem(backbone) or _mixing_problem(backbone)


def _plain_row_problem(backbone: EncoderBackbone) -> str:
    draw = torch.Generator().manual_seed(0)
    windows = [getattr(module, "sliding_window", None) for module in backbone.modules()]
    length = min(SLOTS + max((n for n in windows if isinstance(n, int)), default=0), backbone.max_positions)
    ids = _random_ids(backbone, length, draw)
    chosen = torch.randperm(length, generator=draw)[:SLOTS].sort().values
    source = backbone.model(input_ids=ids).logits[0, chosen]
    mask = torch.zeros_like(ids, dtype=torch.bool).index_fill(1, chosen, True)
    logits = backbone.logits(backbone.states_at(_row(backbone, ids, PREFIX), mask))
    difference = (logits - source).abs().amax(-1)
    worst = int(difference.argmax())
    if difference[worst] <= CLOSE * source.abs().max().clamp(min=1):
        return ""
    return (
        f"through mmgen its logits differ from its own by up to {float(difference[worst]):.2g} (slot {chosen[worst]} "
        f"of a row of {length}); its window, positions, embeddings or head work in a way that mmgen does not know"
    )


def _mixing_problem(backbone: EncoderBackbone) -> str:
    row = _row(backbone, _random_ids(backbone, 7, torch.Generator().manual_seed(1)), PAD)
    changed = row.states.clone()
    changed[:, 3] = row.states[:, 0]
    before, after = (
        backbone.encode(Slots(states, row.positions, row.types, row.layout)).last for states in (row.states, changed)
    )
    rest = torch.arange(7) != 3
    return "" if torch.allclose(before[:, rest], after[:, rest], rtol=CLOSE, atol=CLOSE) else MIXES


def _row(backbone: EncoderBackbone, ids: Tensor, role: int) -> Slots:
    """A row of tokens (1, L) that has one role."""
    zeros = torch.zeros_like(ids)
    positions = torch.arange(ids.shape[1])[None]
    return Slots(backbone.embed(ids), positions, zeros, Layout(torch.full_like(ids, role), zeros, zeros))


def _random_ids(backbone: EncoderBackbone, length: int, draw: torch.Generator) -> Tensor:
    """Tokens (1, length) other than padding; one in eight is the [MASK]."""
    words: Any = backbone.model.get_input_embeddings()
    ids = torch.randint(words.num_embeddings, (1, length), generator=draw)
    ids[ids == backbone.pad_id] = backbone.mask_id
    ids[:, ::8] = backbone.mask_id
    return ids
