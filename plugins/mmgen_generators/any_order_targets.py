"""Targets of the any-order generator, in loader workers: noise in them, their slots, and partly written texts.

The loss (Austin et al., 2021; Sahoo et al., 2024; Nie et al., 2025). Of the L places of a text, m is drawn from 1..L
and S, m of the places, at random. The tokens at S are replaced by [MASK], and

    loss = (L / m) * sum over i in S of -log p(y_i | X, the tokens outside S).

Each m has probability 1 / L: the mean over m and S is sum over m of (1 / m) E_S[sum over i in S of -log p(y_i | ...)].
With the tokens written one by one in a random order, the token that is written when m places are open is a random one
of S, and S is a random set of m places: the same sum, E over orders of sum_i -log p(y_i | the tokens before it in the
order). By Jensen's inequality this is at least -log p(y | X, L).

It is also masked diffusion's integral over t of (1 / t) E[sum over masked i of -log p(y_i | ...)] for 0 < t < 1, where
each place is masked with probability t: a set of m places has the weight integral of t^(m-1) (1-t)^(L-m) dt
= (m-1)! (L-m)! / L!, which is (1 / m) / (L over m). The weight L / m is at most L, whereas 1 / t has no bound.

With blocks of B tokens (Arriola et al., 2025), each block has its own m from 1..B and weight B / m, and sees the clean
blocks before it. B = 1 is the loss of BERT-gen (bertgen, section 3.2).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from mmgen.objectives import Rows, TextTargets
from mmgen.parts import Backbone
from mmgen.tensors import NOISY, WRITTEN, Slot, Tail, Targets, tail_of

from . import AnyOrder

PARTIAL = "partial"  # the label of `Targets` with partly written texts
SPREAD = ((math.sqrt(5) - 1) / 2, math.sqrt(2))  # of questions and blocks: multiples fill the interval [0, 1) evenly
Noise = Sequence[Sequence[Sequence[bool]]]  # of B examples' K targets: whether a place is masked


class AnyOrderTargets(TextTargets):
    """Lays out a target as its clean blocks, except for the last, and its noisy blocks.

    block  tokens per block
    ends   whether the text ends at its first end token: the last block is filled with end tokens, and all places can be
           masked. Otherwise the number of places is known, and the last place always has the end token
    """

    def __init__(self, config: AnyOrder, backbone: Backbone) -> None:
        super().__init__(backbone, config.max_tokens)
        self.block, self.ends = min(config.block or config.max_tokens, config.max_tokens), config.length == "end"

    def canvas(self, tokens: int) -> int:
        """The number of places for a text of T tokens, its end included."""
        return min(-(-tokens // self.block) * self.block, self.max_tokens) if self.ends else tokens

    def slots(self, tokens: int) -> int:
        places = self.canvas(tokens)
        return places + (places - 1) // self.block * self.block

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        """Every place masked: what the first pass over each block reads."""
        return self._build_tail(targets, [[[True] * len(self.maskable_places(y)) for y in texts] for texts in targets])[
            0
        ]

    def lay_out_orders(self, targets: Sequence[Sequence[Sequence[int]]]) -> tuple[Tail, Tensor]:
        """Every pass that writes a text in an order drawn from its tokens, a token in each block: a copy of the text in
        which one token of every block is predicted. Also the index (B, S) of each slot's text in its row."""
        ranks = [[self._draw_ranks(y) for y in row] for row in targets]
        passes = min(self.block, max(len(of_text) for row in ranks for of_text in row))
        copies = [[y for y in row for _ in range(passes)] for row in targets]
        (tail, _), (later, _) = (
            self._build_tail(
                copies,
                [[[rank >= n + after for rank in of_text] for of_text in row for n in range(passes)] for row in ranks],
            )
            for after in (0, 1)
        )
        labels = tail.labels.masked_fill(later.labels != -100, -100)
        return replace(tail, labels=labels), (tail.layout.group - 1) // passes

    def lay_out_blanks(self, texts: Sequence[Sequence[int]]) -> Tail:
        noise = [[y[place : place + 1] == [self.mask_id] for place in self.maskable_places(y)] for y in texts]
        tail, _ = self._build_tail([texts], [noise])
        first = torch.tensor([0, *(y.index(self.mask_id) for y in texts)])[tail.layout.group]
        return replace(tail, labels=tail.labels.masked_fill(tail.offsets != first, -100))

    def _draw_ranks(self, target: Sequence[int]) -> list[int]:
        """The place of each token in the order of its block."""
        places, draw = len(self.maskable_places(target)), random.Random(repr([*target]))
        sizes = [min(self.block, places - first) for first in range(0, places, self.block)]
        return [rank for size in sizes for rank in draw.sample(range(size), size)]

    def collate(self, rows: Rows) -> Targets:
        targets = [self.targets(example) for example in rows.examples]
        noise = [
            [list(self._draw_noise(rows, row, number, y)) for number, y in enumerate(texts)]
            for row, texts in enumerate(targets)
        ]
        tail, weights = self._build_tail(targets, noise)
        labels: dict[str, Tensor] = {} if self.block == 1 else {"weights": weights}
        if not self.ends:
            most = max(map(len, targets))
            labels["lengths"] = torch.tensor([[*map(len, texts)] + [-100] * (most - len(texts)) for texts in targets])
        return Targets({"loss": sum(len(y) for texts in targets for y in texts)}, labels, tail)

    def ask(self, rows: Rows) -> Targets:
        """The partly written texts of queries: "partial" (B, C) tokens, [MASK] in the gaps, -1 behind the text or for a
        query without one; no label if no query has one."""
        partial = [example.labels.get("text") for example in rows.examples]
        texts = [[] if text is None else self.with_blanks(text) for text in partial]
        if not any(texts):
            return Targets({})
        longest = max(map(len, texts))
        return Targets({}, {PARTIAL: torch.tensor([text + [-1] * (longest - len(text)) for text in texts])})

    def maskable_places(self, target: Sequence[int]) -> range:
        """The places of a target that can be masked."""
        return range(self.canvas(len(target)) - (not self.ends))

    def _draw_noise(self, rows: Rows, row: int, number: int, target: Sequence[int]) -> Iterator[bool]:
        """Whether each place of the target with this number is masked. Over the targets and blocks of an example, the
        shares of masked places spread evenly."""
        places = len(self.maskable_places(target))
        if self.block == 1:
            yield from [True] * places
            return
        start, draw = rows.draw(row, "spread").random(), rows.draw(row, f"question {number}")
        for first in range(0, places, self.block):
            size = min(self.block, places - first)
            share = (start + number * SPREAD[0] + first // self.block * SPREAD[1]) % 1
            masked = {*draw.sample(range(size), 1 + int(share * size))}
            yield from (place in masked for place in range(size))

    def _build_tail(self, targets: Sequence[Sequence[Sequence[int]]], noise: Noise) -> tuple[Tail, Tensor]:
        """The tail, and the weight (B, S) of each slot's loss."""
        rows = [
            [
                slot
                for k, (y, masked) in enumerate(zip(*pair, strict=True), 1)
                for slot in self._slots_of_target(y, masked, k)
            ]
            for pair in zip(targets, noise, strict=True)
        ]
        tail, weights = tail_of(rows, self.pad_id)
        return tail, weights.float()

    def _slots_of_target(self, target: Sequence[int], masked: Sequence[bool], group: int) -> Sequence[Slot]:
        """The slots of one target."""
        size = self.canvas(len(target))
        filled = [*target, *[self.end_id] * (size - len(target))]
        clean = [(y, t, WRITTEN, group, t // self.block + 1, -100, 0.0) for t, y in enumerate(filled)]
        noisy = [(y, t, NOISY, group, t // self.block + 1, -100, 0.0) for t, y in enumerate(filled)]
        for first in range(0, len(masked), self.block):
            block = masked[first : first + self.block]
            for t in (first + place for place, hidden in enumerate(block) if hidden):
                noisy[t] = (self.mask_id, t, NOISY, group, t // self.block + 1, filled[t], len(block) / sum(block))
        return clean[: (size - 1) // self.block * self.block] + noisy
