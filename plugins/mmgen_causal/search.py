"""Searching: greedy, beams and sampling are transformers' own `generate`, driven through a small language model."""

from __future__ import annotations

from torch import Tensor
from transformers import GenerationConfig, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from mmgen import Decoding
from mmgen.errors import UnavailableError

from .writing import Writing

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p")


class Writer(PreTrainedModel, GenerationMixin):
    """`Writing` in the shape that `generate` drives; keys and values stay with it."""

    config_class = PreTrainedConfig

    def __init__(self, writing: Writing, vocabulary: int) -> None:
        super().__init__(PreTrainedConfig(vocab_size=vocabulary, tie_word_embeddings=False))
        self.writing = writing

    device = property(lambda self: self.writing.begin.device)

    def _supports_default_dynamic_cache(self) -> bool:
        return False

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs) -> dict:
        return {"input_ids": input_ids}

    def forward(self, input_ids: Tensor, **kwargs) -> CausalLMOutputWithPast:
        return CausalLMOutputWithPast(
            logits=self.writing.next_logits(input_ids).unsqueeze(1), past_key_values=self.writing
        )


def search(writing: Writing, options: Decoding, max_tokens: int) -> list[tuple[list[int], float]]:
    """(tokens, mean log-probability) of the texts found, `num_return_sequences` an input, best first."""
    if options.num_beam_groups > 1:
        raise UnavailableError("the generator 'causal' has no diverse beam search; leave num_beam_groups at 1")
    backbone = writing.model.backbone
    chosen = options.model_dump(
        exclude={"num_beam_groups", "diversity_penalty", *(() if options.do_sample else SAMPLING)}
    )
    config = GenerationConfig(
        **chosen,
        max_new_tokens=max_tokens,
        eos_token_id=backbone.end_id,
        pad_token_id=backbone.pad_id,
        use_cache=True,
        output_logits=True,
        return_dict_in_generate=True,
    )
    writer = Writer(writing, len(backbone.tokenizer))
    out = writer.generate(writing.begin, generation_config=config)
    beams = getattr(out, "beam_indices", None)
    scores = writer.compute_transition_scores(out.sequences, out.logits, beams, normalize_logits=True)
    found = []
    for tokens, each in zip(out.sequences[:, 1:].tolist(), scores, strict=True):
        tokens = tokens[: tokens.index(backbone.end_id) + 1] if backbone.end_id in tokens else tokens
        found.append((tokens, each[: len(tokens)].mean().item()))
    return found
