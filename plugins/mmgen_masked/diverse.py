"""Diverse beam search (Vijayakumar et al., 2018): several *different* questions for one input.

The beams are split into groups. Groups go in turn at every step, and a token costs `diversity_penalty` for every beam
of an earlier group that has just chosen it (Hamming diversity). Within a group it is beam search. transformers no
longer has it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mmgen import Decoding

from .writing import Writing


def diverse_beam_search(
    writing: Writing, options: Decoding, max_tokens: int, end_id: int
) -> list[tuple[list[int], float]]:
    """(tokens, mean log-probability), `num_return_sequences` an input, best first.

    A hypothesis is ranked by its log-probability (the penalty never counts) over its length to `length_penalty`.
    """
    inputs, groups = len(writing.prefix), options.num_beam_groups
    width = options.num_beams // groups
    beams = options.num_beams
    device = writing.prefix.free.device
    tokens = torch.empty(inputs * beams, 0, dtype=torch.long, device=device)
    sums = torch.full((inputs, groups, width), -torch.inf, device=device)
    sums[:, :, 0] = 0.0  # the beams of a group start equal: only the first may branch
    finished: list[list[tuple[float, list[int], float]]] = [[] for _ in range(inputs)]
    for t in range(1, max_tokens + 1):
        logp = writing.next_logits(tokens).log_softmax(-1).view(inputs, groups, width, -1)
        sources, chosen, sums = _choose(logp, sums, options.diversity_penalty)  # (inputs, groups, width) each
        first_row = torch.arange(inputs * groups, device=device).view(inputs, groups, 1) * width
        rows = (first_row + sources).flatten()
        tokens = torch.cat([tokens[rows], chosen.flatten().unsqueeze(1)], 1)
        writing.reorder_cache(rows)
        sums = _collect(
            finished, tokens.view(inputs, beams, t), sums, end_id, options.length_penalty, last=t == max_tokens
        )
        ended = sums.isinf().flatten(1).all(1)
        if ended.all():
            break
        writing.leave(ended)
    wanted = options.num_return_sequences
    return [(found, mean) for ended in finished for found, mean in _best(ended, wanted)]


def _choose(logp: Tensor, sums: Tensor, penalty: float) -> tuple[Tensor, Tensor, Tensor]:
    """One step of all groups: which beam each new beam goes on from, with which token, and its log-probability."""
    inputs, groups, width, vocabulary = logp.shape
    used = torch.zeros(inputs, vocabulary, device=logp.device)
    sources, chosen, totals = [], [], []
    for group in range(groups):
        total = sums[:, group].unsqueeze(-1) + logp[:, group]  # (inputs, width, V)
        ranked = (total - penalty * used.unsqueeze(1)).flatten(1).topk(width, -1).indices  # (inputs, width)
        source, token = ranked // vocabulary, ranked % vocabulary
        sum_ = total.flatten(1).gather(1, ranked)
        used.scatter_add_(1, token, torch.isfinite(sum_).float())
        sources.append(source)
        chosen.append(token)
        totals.append(sum_)
    return torch.stack(sources, 1), torch.stack(chosen, 1), torch.stack(totals, 1)


def _collect(finished: list, tokens: Tensor, sums: Tensor, end_id: int, length_penalty: float, last: bool) -> Tensor:
    """Moves ended hypotheses (at the last step all) to `finished`; their beams are closed with -inf."""
    flat = sums.flatten(1)  # (inputs, beams)
    ended = ((tokens[:, :, -1] == end_id) | last) & torch.isfinite(flat)
    length = tokens.shape[-1]
    for input_, beam in ended.nonzero().tolist():
        total = flat[input_, beam].item()
        finished[input_].append((total / length**length_penalty, tokens[input_, beam].tolist(), total / length))
    return flat.masked_fill(ended, -torch.inf).view_as(sums)


def _best(ended: list[tuple[float, list[int], float]], wanted: int) -> list[tuple[list[int], float]]:
    """The best different hypotheses; where there are too few different ones, the best again."""
    different: dict[tuple[int, ...], float] = {}
    for _, found, mean in sorted(ended, key=lambda hypothesis: -hypothesis[0]):
        different.setdefault(tuple(found), mean)
    return [(list(found), mean) for found, mean in list(different.items()) * wanted][:wanted]
