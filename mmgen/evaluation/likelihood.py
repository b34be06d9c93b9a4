"""How probable given texts are under a model, by text, token and word; the most probable words of blanks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from ..attention_maps import words_of
from ..configs import PROMPT
from ..errors import DataError
from ..examples import Example, Generation, Likelihood
from ..parts import Backbone
from ..sequence import Sequencer
from ..tensors import Batch

BEAMS = 20  # fillings of blanks that are followed at least


@torch.inference_mode()
def likelihoods(model: Sequencer, batch: Batch, examples: Sequence[Example]) -> list[list[Likelihood]]:
    """The likelihood of every target of B examples, from one pass; `batch`: of them, as for training. A target over
    `max_tokens` is cut as in training."""
    generator, results = model.generator, []
    values, kind = iter(generator.likelihood(model, batch, examples).tolist()), generator.likelihood_kind
    for example in examples:
        row = []
        for text, tokens in zip(example.targets, generator.reader.targets(example), strict=True):
            known = tuple(next(values) for _ in tokens)
            score = sum(known) / len(known)
            row.append(Likelihood(example.id, text, tuple(tokens), score, log_probabilities=known, kind=kind))
        results.append(row)
    return results


def spelt(likelihood: Likelihood, backbone: Backbone) -> Likelihood:
    """The likelihood with its tokens and words as texts."""
    tokens, values = likelihood.tokens, likelihood.log_probabilities
    pieces = zip((backbone.tokenizer.decode([token]) for token in tokens), values, strict=True)
    # without the end; unknown words as the tokenizer shows them
    words = words_of([backbone.tokenizer.decode(tokens[:end]).strip() for end in range(1, len(tokens))])
    sums = tuple((word.strip(), sum(values[place] for place in places)) for word, places in words)
    return replace(likelihood, pieces=tuple(pieces), words=sums)


@torch.inference_mode()
def fill(model: Sequencer, batch: Batch, text: str, top: int) -> tuple[list[Generation], list[list[tuple[str, float]]]]:
    """The `top` most probable fillings of all blanks of a text, found by beams from left to right; and the most
    probable words of each blank with their probabilities, the blanks before it filled as in the best of them.
    `batch`: one input. A filling's score is the mean log-probability of its words. Raises DataError."""
    generator, backbone = model.generator, model.backbone
    if (prompts := batch.label(PROMPT)) is not None and prompts.shape[1] > 1:
        raise DataError("a text with blanks can have one prompt only")
    partial = [*generator.reader.with_blanks(text), backbone.end_id]
    places = [place for place, token in enumerate(partial) if token == backbone.mask_id]
    texts, totals, words = torch.tensor([partial], device=model.device), torch.zeros(1, device=model.device), []
    for place in places:
        logits = backbone.logits(generator.blank_states(model, batch, texts.tolist()))
        values = logits[:, : len(backbone.tokenizer)].float().log_softmax(-1)
        values[:, [*backbone.forbidden_ids, backbone.end_id]] = -torch.inf
        best, ids = values[0].topk(min(top, int(values[0].isfinite().sum())))
        words.append(
            [(backbone.decode_text([id_]), value) for id_, value in zip(ids.tolist(), best.exp().tolist(), strict=True)]
        )
        sums = (totals.unsqueeze(1) + values).flatten()
        totals, flat = sums.topk(min(max(top, BEAMS), int(sums.isfinite().sum())))
        texts = texts[flat // values.shape[1]]
        texts[:, place] = flat % values.shape[1]
    fillings = [
        Generation(batch.ids[0], backbone.decode_text(filled), tuple(filled), total / len(places))
        for filled, total in zip(texts[:top].tolist(), totals.tolist(), strict=False)
    ]
    return fillings, words
