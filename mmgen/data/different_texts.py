"""Exactly n different texts, chosen from many by score and distance, also from texts that a query is to avoid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from ..decoding import Decoding
from ..errors import DataError
from ..examples import Generation
from ..parts import Backbone
from ..prompts import AVOID, PROMPT_COUNTS
from ..tensors import Batch


def choose_different(
    write: Callable[[Decoding], list[list[Generation]]],
    batch: Batch,
    options: Decoding,
    backbone: Backbone,
) -> list[list[Generation]]:
    """Exactly `options.num_return_sequences` different texts per example, or per prompt of it, in the order in which
    they are chosen from many.

    write  the texts of a search for every example; those of a prompt are next to one another

    The candidates are the texts of a beam search; of a wider one, if there are too few. A text is chosen by maximal
    marginal relevance (Carbonell and Goldstein, 1998): `difference` times its distance from the nearest text that is
    chosen already or to be avoided (`Batch.label("avoid")`), and the rest times the mean probability of its tokens. The
    distance is 1 less the Dice overlap of two texts' tokens and pairs of neighbours, from 0 to 1. Texts that equal one
    of these, but for case, are never chosen. Raises DataError if there are too few.
    """
    counts, ids = batch.label(PROMPT_COUNTS), batch.label(AVOID)
    queries = [row for row in range(len(batch.ids)) for _ in range(1 if counts is None else int(counts[row]))]
    avoided = [[] if ids is None else [t[t >= 0].tolist() for t in ids[row] if (t >= 0).any()] for row in queries]
    pools: list[dict[str, Generation]] = []
    for candidates in options.for_candidates():
        texts = [text for row in write(candidates) for text in row]
        pools = [{} for _ in queries]
        for place, text in enumerate(texts):
            pools[place * len(queries) // len(texts)].setdefault(text.text.casefold(), text)
        for pool, unwanted in zip(pools, avoided, strict=True):
            for tokens in unwanted:
                pool.pop(backbone.decode_text(tokens).casefold(), None)
        if all(len(pool) >= options.num_return_sequences for pool in pools):
            break
    chosen: list[list[Generation]] = [[] for _ in batch.ids]
    for row, pool, unwanted in zip(queries, pools, avoided, strict=True):
        if len(pool) < options.num_return_sequences:
            raise DataError(
                f"'{batch.ids[row]}': {options.num_return_sequences} different texts are required, but beam search "
                f"ends in {len(pool)}; ask for fewer, or raise decoding.candidates"
            )
        chosen[row] += _most_different(pool.values(), unwanted, options, backbone.end_id)
    return chosen


def _most_different(
    pool: Iterable[Generation], avoided: Iterable[Sequence[int]], options: Decoding, end_id: int
) -> list[Generation]:
    """`options.num_return_sequences` texts of the pool, each the best beside those before it."""
    left, chosen = [(text, token_pairs(text.tokens, end_id)) for text in pool], list[Generation]()
    near = [token_pairs(tokens, end_id) for tokens in avoided]
    while len(chosen) < options.num_return_sequences:
        values = [
            options.difference * min((distance(pairs, other) for other in near), default=1.0)
            + (1 - options.difference) * math.exp(text.score)
            for text, pairs in left
        ]
        text, pairs = left.pop(values.index(max(values)))
        chosen.append(text)
        near.append(pairs)
    return chosen


def token_pairs(tokens: Sequence[int], end_id: int) -> frozenset[int | tuple[int, int]]:
    """The tokens of a text without its end, and its pairs of neighbours."""
    words = [token for token in tokens if token != end_id]
    return frozenset([*words, *pairwise(words)])


def distance(first: frozenset[int | tuple[int, int]], second: frozenset[int | tuple[int, int]]) -> float:
    """1 less the Dice overlap of two sets of `token_pairs`."""
    return 1 - 2 * len(first & second) / max(1, len(first) + len(second))
