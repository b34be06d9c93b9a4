"""Search for texts: greedy, beams and sampling by transformers' `generate`, through a small adapter.

A generator that writes token by token provides a `Stepper`, which has the input and computes the logits of the next
token. The stepper holds keys and values. `generate` sees one row of tokens per text and requests the next logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import GenerationConfig, GenerationMixin, LogitsProcessorList, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from .decoding import SAMPLING, Decoding
from .examples import Generation
from .parts import Backbone
from .prompts import Prompts
from .sampling import derive, draw, seeds_of_texts

_CACHE = next(field.name for field in fields(CausalLMOutputWithPast) if field.name in ("cache", "past_key_values"))


class Stepper(Protocol):
    """Computes logits for B inputs step by step. Each input has n adjacent rows: row b n + i is the i-th of input b.

    A stepper may also have `leave(done)`: `done` (B,) marks inputs whose texts are final. The logits of their rows are
    ignored from then on, so they need not be computed.
    """

    def next_logits(self, written: Tensor) -> Tensor:
        """Tokens so far (B n, t), without `start` -> logits of the next token (B n, V). t is 0 in the first call, when
        all rows of an input are equal, and grows by one with each call."""
        ...

    def reorder_cache(self, rows: Tensor) -> None:
        """Continue from these rows (B n,), each a row of the same input; rows may repeat. Called between two calls of
        `next_logits`; a stepper without a cache does nothing."""
        ...


def search(
    stepper: Stepper,
    start: Tensor,
    options: Decoding,
    backbone: Backbone,
    max_tokens: int,
    seeds: Tensor | None = None,
) -> list[tuple[list[int], float]]:
    """(tokens, mean log-probability) of `options.num_return_sequences` texts per input, best first.

    start       (B, s) tokens, at least one, at the beginning of each text. The results do not contain them; only rules
                about repetition read them
    max_tokens  of a text, its end included
    seeds       (B,) `Batch.seeds`, for sampling: a text depends on its example's seed and its number alone. Without
                them, torch's generator draws some

    Tokens end with the first end token, which is included and counted. The backbone's `forbidden_ids` are never chosen,
    as by `suppress_tokens` of transformers; log-probabilities remain the model's, which gives them a share.
    """
    # untyped: the declared type of `self` in `generate` has more members than it uses
    model: Any = _StepperModel(stepper, start, len(backbone.tokenizer))
    if options.do_sample:
        inputs = len(start) if seeds is None else len(seeds)
        per_input = len(start) * options.num_return_sequences // inputs
        model.seeds = seeds_of_texts(seeds, inputs, per_input, start.device).flatten()
    out = model.generate(start, generation_config=_generation_config(options, backbone, max_tokens))
    tokens = out.sequences[:, start.shape[1] :]
    ends = tokens == backbone.end_id
    after = ends.cumsum(1) - ends.long() > 0  # slots after the end
    scores = _token_scores(tokens, out.logits, getattr(out, "beam_indices", None)).masked_fill(after, 0)
    lengths = (~after).sum(1)
    means = scores.sum(1) / lengths
    columns = (tokens.tolist(), lengths.tolist(), means.tolist())
    return [(row[:length], mean) for row, length, mean in zip(*columns, strict=True)]


def as_generations(
    results: Sequence[tuple[list[int], float]], ids: Sequence[str], backbone: Backbone, prompts: Prompts | None = None
) -> list[list[Generation]]:
    """The results of `search` for the examples `ids` in the format of `Generator.generate`: a list of texts per
    example. With prompts, `search` has searched for each of an example's K prompts."""
    most = 1 if prompts is None else prompts.most
    counts = [1] * len(ids) if prompts is None else prompts.counts.tolist()
    per_prompt = len(results) // len(ids) // most
    return [
        [
            Generation(id_, backbone.decode_text(tokens), tuple(tokens), score)
            for tokens, score in results[row * most * per_prompt :][: count * per_prompt]
        ]
        for row, (id_, count) in enumerate(zip(ids, counts, strict=True))
    ]


class _StepperModel(PreTrainedModel, GenerationMixin):
    """A stepper as the language model that `generate` requires."""

    config_class = PreTrainedConfig

    def __init__(self, stepper: Stepper, start: Tensor, words: int) -> None:
        sizes: dict[str, Any] = {"vocab_size": words, "tie_word_embeddings": False}  # unknown keys are stored
        super().__init__(PreTrainedConfig(**sizes))
        self.stepper, self.start = stepper, start
        self.seeds: Tensor | None = None  # of the rows, if tokens are sampled

    device = property(lambda self: self.start.device)
    dtype = property(lambda self: torch.float32)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # keys and values stay with the stepper

    def prepare_inputs_for_generation(self, input_ids: Tensor, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        return {"input_ids": input_ids}

    def forward(self, input_ids: Tensor, **kwargs: Any) -> CausalLMOutputWithPast:
        logits = self.stepper.next_logits(input_ids[:, self.start.shape[1] :])[:, : self.config.vocab_size]
        # the methods of a cache that `generate` calls: the stepper keeps the selected rows
        cache: Any = SimpleNamespace(reorder_cache=self.stepper.reorder_cache, get_seq_length=lambda: 0)
        return CausalLMOutputWithPast(logits=logits.unsqueeze(1), **{_CACHE: cache})

    def _get_logits_processor(self, *args: Any, **kwargs: Any) -> LogitsProcessorList:
        """Those of transformers, and, if tokens are sampled, one that leaves only the token that a row's seed draws."""
        processors = super()._get_logits_processor(*args, **kwargs)  # type: ignore[misc]  # as in `generate`
        if self.seeds is not None:
            processors.append(self._draw)
        return processors

    def _draw(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        assert self.seeds is not None
        drawn = draw(scores.softmax(-1), derive(self.seeds, input_ids.shape[1]))
        return torch.full_like(scores, -torch.inf).scatter(1, drawn.unsqueeze(1), 0.0)

    # a static method in transformers, but called on the object; here it needs the stepper
    def _check_early_stop_heuristic(self, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        """When the beams of an input cannot improve any more, `generate` ignores its further tokens, but continues
        until this holds for all inputs. The result (B, 1) tells the stepper which inputs are final."""
        improvable = super()._check_early_stop_heuristic(*args, **kwargs)
        if leave := getattr(self.stepper, "leave", None):
            leave(~improvable.squeeze(1))
        return improvable


def _token_scores(tokens: Tensor, logits: Sequence[Tensor], beams: Tensor | None) -> Tensor:
    """Log-probabilities (R, T) of tokens under the logits of the steps, (R', V) each; `beams` (R, T): the rows in which
    the tokens were chosen, by default the same rows. Computed step by step to save memory."""
    identity = torch.arange(len(tokens), device=tokens.device)
    scores = torch.zeros(tokens.shape, device=tokens.device)
    for t, step in enumerate(logits[: tokens.shape[1]]):
        rows = identity if beams is None else beams[:, t].clamp(min=0)  # -1 after the end of a text
        scores[:, t] = (step[rows, tokens[:, t]] - step.logsumexp(-1)[rows]).float()
    return scores


def _generation_config(options: Decoding, backbone: Backbone, max_tokens: int) -> GenerationConfig:
    unused = {"min_new_tokens", "candidates", "difference", *(() if options.do_sample else SAMPLING)}
    return GenerationConfig(
        **options.model_dump(exclude=unused),
        min_new_tokens=options.min_new_tokens or None,
        max_new_tokens=max_tokens,
        eos_token_id=backbone.end_id,
        pad_token_id=backbone.pad_id,
        suppress_tokens=list(backbone.forbidden_ids) or None,
        use_cache=True,
        output_logits=True,
        return_dict_in_generate=True,
    )
