"""The backbone around a masked-LM encoder of no known family: what its class does, tried on made-up rows."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from mmgen.errors import DataError, PluginError
from mmgen.tensors import PAD, PREFIX, Layout, Slots

from .attention import transformers_attention
from .encoder import EncoderBackbone
from .extra_rows import find_table
from .reach import MIXES

SLOTS = 40  # that `difference_from_source` compares
CLOSE = 1e-3  # share of the largest logit; other kernels and orders of sums differ by less


class AnyEncoderBackbone(EncoderBackbone):
    """An `EncoderBackbone` that knows no family."""

    def __init__(self, config: Any, model: PreTrainedModel, tokenizer: Any) -> None:
        super().__init__(config, model, tokenizer)
        self._head = [head_alone(model)]  # in a list, because its parameters are the model's

    def _delimiters(self, tokenizer: Any) -> tuple[int, int]:
        """Tokenizers made for decoders (EuroBERT's) call them beginning and end of a sequence."""
        start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
        return (
            tokenizer.bos_token_id if start is None else start,
            tokenizer.eos_token_id if end is None else end,
        )

    def _first_position(self) -> int:
        """As in RoBERTa, a position table that has a row for padding starts after it."""
        table = find_table(self.model, "position_embeddings")
        return 0 if table is None or table.padding_idx is None else table.padding_idx + 1

    def logits(self, states: Tensor) -> Tensor:
        rows = states.reshape(1, -1, states.shape[-1])
        logits: Tensor = self._head[0](inputs_embeds=rows).logits
        return logits.reshape(*states.shape[:-1], -1)

    def set_gradient_checkpointing(self, enabled: bool) -> None:
        if enabled and not self._checkpointing_layers():
            raise DataError(
                f"transformers cannot recompute the layers of '{self.model.config.model_type}'; remove "
                "training.gradient_checkpointing"
            )
        super().set_gradient_checkpointing(enabled)


class _Given(nn.Module):
    """Stands where the encoder is: its states are what it is given."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> BaseModelOutputWithPooling:
        return BaseModelOutputWithPooling(last_hidden_state=inputs_embeds)


def head_alone(model: PreTrainedModel) -> PreTrainedModel:
    """The model without its encoder: called with states (B, L, H) as `inputs_embeds`, its own code turns them into
    logits (B, L, V), whatever stands before the output embeddings. Shares all parameters with the model. Raises
    PluginError for a model without output embeddings."""
    if model.get_output_embeddings() is None or model.base_model is model:
        raise PluginError(f"no masked-language-model head found in {type(model).__name__}")
    alone = copy.copy(model)
    alone._modules = {**model._modules, model.base_model_prefix: _Given()}
    return alone


@torch.no_grad()
def difference_from_source(backbone: EncoderBackbone) -> str:
    """How the backbone differs from the model that it holds, called by itself; empty if it does not.

    Compares the logits of 40 random slots of a plain row that is longer than every sliding window, and checks that
    slots which see only themselves do not depend on each other. Takes milliseconds for small encoders.
    """
    model, was_training = backbone.model, backbone.training
    backbone.eval()
    try:
        return _plain_row_problem(backbone, model) or _mixing_problem(backbone)
    finally:
        backbone.train(was_training)


def _plain_row_problem(backbone: EncoderBackbone, model: PreTrainedModel) -> str:
    draw = torch.Generator().manual_seed(0)
    length = min(SLOTS + widest_window(model), backbone.max_positions)
    ids = _random_ids(backbone, length, draw)
    chosen = torch.randperm(length, generator=draw)[:SLOTS]
    with transformers_attention(model):
        source = model(input_ids=ids).logits[0, chosen]
    logits = backbone.logits(backbone.encode(_row(backbone, ids, PREFIX)).last[0, chosen])
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
    if torch.allclose(before[:, rest], after[:, rest], rtol=CLOSE, atol=CLOSE):
        return ""
    return MIXES


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


def widest_window(model: PreTrainedModel) -> int:
    """The widest `sliding_window` of the model's layers; 0 without one."""
    widths = [getattr(module, "sliding_window", None) for module in model.modules()]
    return max((width for width in widths if isinstance(width, int)), default=0)
