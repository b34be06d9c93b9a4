"""Searching is not our invention: greedy, beams, sampling and their rules are transformers' own `generate`.

Its adapter is the small `Writer` below: a language model whose forward asks `Writing` for the next logits. The prompt
that `generate` sees is one placeholder token; X itself stays with `Writing`, and so is read once however many beams
there are."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import GenerationConfig, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from mmgen import Decoding
from mmgen.tensors import Slots

from .diverse import diverse_beam_search
from .writing import Writing


class Writer(PreTrainedModel, GenerationMixin):
    """`Writing` in the shape that transformers' `generate` drives."""

    config_class = PreTrainedConfig

    def __init__(self, writing: Writing, vocabulary: int) -> None:
        super().__init__(PreTrainedConfig(vocab_size=vocabulary, tie_word_embeddings=False))
        self.writing = writing

    device = property(lambda self: self.writing.lengths.device)
    dtype = property(lambda self: torch.float32)

    def _supports_default_dynamic_cache(self) -> bool:
        return False  # keys and values stay with `Writing`

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs) -> dict:
        return {"input_ids": input_ids}

    def forward(self, input_ids: Tensor, **kwargs) -> CausalLMOutputWithPast:
        logits = self.writing.next_logits(input_ids[:, 1:])
        return CausalLMOutputWithPast(logits=logits.unsqueeze(1), past_key_values=self.writing)

    def _check_early_stop_heuristic(self, *args, **kwargs) -> Tensor:
        """Where beams can improve no more, `generate` ignores what is written from then on, but goes on until that is
        so of every input; what (B, 1) it finds lets the others leave."""
        improvable = super()._check_early_stop_heuristic(*args, **kwargs)
        self.writing.leave(~improvable.squeeze(1))
        return improvable


def search(model, prefix: Slots, options: Decoding, max_tokens: int) -> list[tuple[list[int], float]]:
    """(tokens, mean log-probability) of the texts found, `num_return_sequences` an input, best first."""
    backbone, writing = model.backbone, Writing(model, prefix)
    if options.num_beam_groups > 1:
        return diverse_beam_search(writing, options, max_tokens, backbone.end_id)
    start = torch.full((prefix.positions.shape[0], 1), backbone.start_id, device=prefix.positions.device)
    writer = Writer(writing, len(backbone.tokenizer))
    out = writer.generate(start, generation_config=_generation_config(backbone, options, max_tokens))
    tokens = out.sequences[:, 1:]
    ended = (tokens == backbone.end_id).cumsum(1) - (tokens == backbone.end_id).long() > 0  # slots after the end
    means = _scores(tokens, out.logits, getattr(out, "beam_indices", None)).masked_fill(ended, 0).sum(1) / (~ended).sum(
        1
    )
    return [(row.tolist(), mean.item()) for row, mean in zip(tokens, means, strict=True)]


def _scores(tokens: Tensor, logits: Sequence[Tensor], beams: Tensor | None) -> Tensor:
    """Log-probabilities (R, T) of tokens under the steps' logits, (R', V) each; `beams` (R, T): the rows that tokens
    were chosen in, by default their own. Step by step: the logits of all steps are large enough once."""
    own = torch.arange(len(tokens), device=tokens.device)
    found = torch.zeros(tokens.shape, device=tokens.device)
    for t, step in enumerate(logits[: tokens.shape[1]]):
        rows = own if beams is None else beams[:, t].clamp(min=0)  # -1 behind a text's end
        found[:, t] = (step[rows, tokens[:, t]] - step.logsumexp(-1)[rows]).float()
    return found


def _generation_config(backbone, options: Decoding, max_tokens: int) -> GenerationConfig:
    chosen = options.model_dump(exclude={"num_beam_groups", "diversity_penalty"})
    sampling = ("temperature", "top_k", "top_p", "min_p", "typical_p")
    if not options.do_sample:
        chosen = {name: value for name, value in chosen.items() if name not in sampling}
    return GenerationConfig(
        **chosen,
        max_new_tokens=max_tokens,
        eos_token_id=backbone.end_id,
        pad_token_id=backbone.pad_id,
        bos_token_id=backbone.start_id,
        use_cache=True,
        output_logits=True,
        return_dict_in_generate=True,
    )
