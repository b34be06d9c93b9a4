"""Diverse beam search (Vijayakumar et al., 2018): several *different* questions for one input.

The beams are split into groups, which take turns at every step. A token costs `diversity_penalty` for every beam of an
earlier group that chose the token at this step (Hamming diversity). Within a group this is beam search. transformers
has removed diverse beam search.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mmgen import Decoding
from mmgen.search import Limits

from .writing import MaskedStepper


def diverse_beam_search(stepper: MaskedStepper, options: Decoding, limits: Limits) -> list[tuple[list[int], float]]:
    """Search `num_return_sequences` hypotheses (tokens, mean log-probability) per input, best first.

    A hypothesis is ranked by log-probability / length ** `length_penalty`; the diversity penalty is not counted. See
    `mmgen.search.search` for forbidden tokens.
    """
    inputs, groups = stepper.searches, options.num_beam_groups
    width = options.num_beams // groups
    beams = options.num_beams
    device = stepper.prefix.free.device
    tokens = torch.empty(inputs * beams, 0, dtype=torch.long, device=device)
    totals = torch.full((inputs, groups, width), -torch.inf, device=device)
    totals[:, :, 0] = 0.0  # the beams of a group start equal, so only the first may branch
    finished: list[list[tuple[float, list[int], float]]] = [[] for _ in range(inputs)]
    for t in range(1, limits.max_tokens + 1):
        logp = stepper.next_logits(tokens).log_softmax(-1).view(inputs, groups, width, -1)
        logp[..., [*limits.forbidden]] = -torch.inf
        sources, next_tokens, totals = _choose_beams(
            logp, totals, options.diversity_penalty
        )  # (inputs, groups, width) each
        first_row = torch.arange(inputs * groups, device=device).view(inputs, groups, 1) * width
        rows = (first_row + sources).flatten()
        tokens = torch.cat([tokens[rows], next_tokens.flatten().unsqueeze(1)], 1)
        stepper.reorder_cache(rows)
        totals = _collect_ended(
            finished,
            tokens.view(inputs, beams, t),
            totals,
            limits.end_id,
            options.length_penalty,
            last=t == limits.max_tokens,
        )
        ended = totals.isinf().flatten(1).all(1)
        if ended.all():
            break
        stepper.leave(ended)
    count = options.num_return_sequences
    return [(hypothesis, mean) for ended in finished for hypothesis, mean in _best_distinct(ended, count)]


def _choose_beams(logp: Tensor, totals: Tensor, penalty: float) -> tuple[Tensor, Tensor, Tensor]:
    """One step of all groups: for every new beam its source beam, its token and its log-probability."""
    inputs, groups, width, vocabulary = logp.shape
    used = torch.zeros(inputs, vocabulary, device=logp.device)
    sources, tokens, new_totals = [], [], []
    for group in range(groups):
        total = totals[:, group].unsqueeze(-1) + logp[:, group]  # (inputs, width, V)
        ranked = (total - penalty * used.unsqueeze(1)).flatten(1).topk(width, -1).indices  # (inputs, width)
        source, token = ranked // vocabulary, ranked % vocabulary
        new_total = total.flatten(1).gather(1, ranked)
        used.scatter_add_(1, token, torch.isfinite(new_total).float())
        sources.append(source)
        tokens.append(token)
        new_totals.append(new_total)
    return torch.stack(sources, 1), torch.stack(tokens, 1), torch.stack(new_totals, 1)


def _collect_ended(
    finished: list, tokens: Tensor, totals: Tensor, end_id: int, length_penalty: float, last: bool
) -> Tensor:
    """Move ended hypotheses (at the last step all) to `finished` and close their beams with -inf."""
    flat = totals.flatten(1)  # (inputs, beams)
    ended = ((tokens[:, :, -1] == end_id) | last) & torch.isfinite(flat)
    length = tokens.shape[-1]
    for input_, beam in ended.nonzero().tolist():
        total = flat[input_, beam].item()
        finished[input_].append((total / length**length_penalty, tokens[input_, beam].tolist(), total / length))
    return flat.masked_fill(ended, -torch.inf).view_as(totals)


def _best_distinct(ended: list[tuple[float, list[int], float]], count: int) -> list[tuple[list[int], float]]:
    """The `count` best distinct hypotheses; if there are fewer, they are repeated."""
    distinct: dict[tuple[int, ...], float] = {}
    for _, tokens, mean in sorted(ended, key=lambda hypothesis: -hypothesis[0]):
        distinct.setdefault(tuple(tokens), mean)
    return [(list(tokens), mean) for tokens, mean in list(distinct.items()) * count][:count]
