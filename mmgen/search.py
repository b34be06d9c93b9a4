"""Search: greedy, beams, sampling and their rules are transformers' own `generate`, driven through one small adapter.

A generator that writes token by token gives a `Stepper`, which knows the input and gives the logits of the next token.
Keys and values stay with it. `generate` sees one row of tokens a text and asks for their next logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import GenerationConfig, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from .decoding import SAMPLING, Decoding
from .errors import UnavailableError
from .parts import Backbone
from .tensors import Generation


class Stepper(Protocol):
    """Writes B inputs step by step. Each has n rows, which stand together: row b n + i is the i-th of input b.

    It may also have `leave(done)`: `done` (B,) marks inputs whose texts are decided, for which nothing need be computed
    any more. What `next_logits` gives for their rows is not read then.
    """

    def next_logits(self, written: Tensor) -> Tensor:
        """Tokens written so far (B n, t), `start` left out -> logits of the next one (B n, V). t is 0 at first, and
        all rows of an input are alike then; it grows by one a call."""
        ...

    def reorder_cache(self, rows: Tensor) -> None:
        """Go on from these rows (B n,), each of its own input's; a row may come more than once. Called between two
        calls of `next_logits`; a stepper that keeps nothing does nothing."""
        ...


@dataclass(frozen=True)
class Limits:
    """Where texts end: with `end_id`, or at `max_tokens`, the end included. `words`: V, how many tokens there are."""

    max_tokens: int
    end_id: int
    pad_id: int
    words: int

    @classmethod
    def of(cls, backbone: Backbone, max_tokens: int) -> Limits:
        return cls(max_tokens, backbone.end_id, backbone.pad_id, len(backbone.tokenizer))


def search(stepper: Stepper, start: Tensor, options: Decoding, limits: Limits) -> list[tuple[list[int], float]]:
    """(tokens, mean log-probability) of the texts found, `options.num_return_sequences` an input, best first.

    start  (B, s) tokens, one at least, that each text begins with. They are not in what is found; only rules about
           repetition read them.

    Tokens end with the first end token, which is kept and counted. Sampling draws from torch's generator. Raises
    UnavailableError for diverse beam search, which transformers does not have, and for texts that may not end within
    `max_tokens`.
    """
    if options.num_beam_groups > 1:
        raise UnavailableError("this generator has no diverse beam search; leave num_beam_groups at 1")
    if options.min_new_tokens >= limits.max_tokens:
        raise UnavailableError(
            f"min_new_tokens = {options.min_new_tokens}: a text has {limits.max_tokens} tokens at most with its end"
        )
    # untyped: the type that `generate` names for its `self` has more than it uses
    driven: Any = _Driven(stepper, start, limits.words)
    out = driven.generate(start, generation_config=_generation_config(options, limits))
    tokens = out.sequences[:, start.shape[1] :]
    ends = tokens == limits.end_id
    after = ends.cumsum(1) - ends.long() > 0  # slots after the end
    scores = _scores(tokens, out.logits, getattr(out, "beam_indices", None)).masked_fill(after, 0)
    lengths = (~after).sum(1)
    means = scores.sum(1) / lengths
    return [
        (row[:length], mean)
        for row, length, mean in zip(tokens.tolist(), lengths.tolist(), means.tolist(), strict=True)
    ]


def as_generations(
    found: Sequence[tuple[list[int], float]], ids: Sequence[str], backbone: Backbone
) -> list[list[Generation]]:
    """What `search` found for the examples `ids`, as `Generator.generate` gives it: a list of texts an example."""
    each = len(found) // len(ids)
    texts = [
        Generation(ids[row // each], backbone.decode_text(tokens), tuple(tokens), score)
        for row, (tokens, score) in enumerate(found)
    ]
    return [texts[first : first + each] for first in range(0, len(texts), each)]


class _Driven(PreTrainedModel, GenerationMixin):
    """A stepper in the shape that `generate` drives: a language model, which is its own cache."""

    config_class = PreTrainedConfig

    def __init__(self, stepper: Stepper, start: Tensor, words: int) -> None:
        sizes: dict[str, Any] = {"vocab_size": words, "tie_word_embeddings": False}  # it keeps what it does not know
        super().__init__(PreTrainedConfig(**sizes))
        self.stepper, self.start = stepper, start

    device = property(lambda self: self.start.device)
    dtype = property(lambda self: torch.float32)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # keys and values stay with the stepper

    def prepare_inputs_for_generation(self, input_ids: Tensor, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        return {"input_ids": input_ids}

    def forward(self, input_ids: Tensor, **kwargs: Any) -> CausalLMOutputWithPast:
        logits = self.stepper.next_logits(input_ids[:, self.start.shape[1] :])
        kept: Any = _Kept(self.stepper)  # has what `generate` asks of a cache
        return CausalLMOutputWithPast(logits=logits.unsqueeze(1), past_key_values=kept)

    # a static method of transformers, which asks it of the object: here it has a stepper to tell
    def _check_early_stop_heuristic(self, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        """Where beams can improve no more, `generate` ignores what is written from then on, but goes on until that is
        so of every input; what (B, 1) it finds lets the others leave."""
        improvable = super()._check_early_stop_heuristic(*args, **kwargs)
        if leave := getattr(self.stepper, "leave", None):
            leave(~improvable.squeeze(1))
        return improvable


class _Kept:
    """In the place of transformers' cache: which rows to go on from is the stepper's to know."""

    def __init__(self, stepper: Stepper) -> None:
        self.reorder_cache = stepper.reorder_cache

    def get_seq_length(self) -> int:
        return 0


def _scores(tokens: Tensor, logits: Sequence[Tensor], beams: Tensor | None) -> Tensor:
    """Log-probabilities (R, T) of tokens under the steps' logits, (R', V) each; `beams` (R, T): the rows that tokens
    were chosen in, by default their own. Step by step: the logits of all steps are large enough once."""
    own = torch.arange(len(tokens), device=tokens.device)
    found = torch.zeros(tokens.shape, device=tokens.device)
    for t, step in enumerate(logits[: tokens.shape[1]]):
        rows = own if beams is None else beams[:, t].clamp(min=0)  # -1 behind a text's end
        found[:, t] = (step[rows, tokens[:, t]] - step.logsumexp(-1)[rows]).float()
    return found


def _generation_config(options: Decoding, limits: Limits) -> GenerationConfig:
    unused = {"num_beam_groups", "diversity_penalty", "min_new_tokens", *(() if options.do_sample else SAMPLING)}
    return GenerationConfig(
        **options.model_dump(exclude=unused),
        min_new_tokens=options.min_new_tokens or None,
        max_new_tokens=limits.max_tokens,
        eos_token_id=limits.end_id,
        pad_token_id=limits.pad_id,
        use_cache=True,
        output_logits=True,
        return_dict_in_generate=True,
    )
