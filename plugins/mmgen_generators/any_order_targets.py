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
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.objectives import Rows, TextTargets
from mmgen.parts import Backbone
from mmgen.tensors import NOISY, WRITTEN, Tail, Targets

from . import AnyOrder
from .base import Slot, tail_of

PARTIAL = "partial"  # the label of `Targets` with partly written texts
MASK_NAME = "[MASK]"  # in partly written texts, whatever the tokenizer's mask token is
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
        self.mask_id, self.pad_id = backbone.mask_id, backbone.pad_id
        self.block, self.ends = min(config.block or config.max_tokens, config.max_tokens), config.length == "end"

    def canvas(self, tokens: int) -> int:
        """The number of places for a text of T tokens, its end included."""
        return min(-(-tokens // self.block) * self.block, self.max_tokens) if self.ends else tokens

    def slots(self, tokens: int) -> int:
        places = self.canvas(tokens)
        return places + (places - 1) // self.block * self.block

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        """Every place masked: what the first pass over each block reads."""
        return self._build_tail(
            targets, [[[True] * len(self._maskable_places(y)) for y in texts] for texts in targets]
        )[0]

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
        texts = [self._partial_text(example) for example in rows.examples]
        if not any(texts):
            return Targets({})
        longest = max(map(len, texts))
        return Targets({}, {PARTIAL: torch.tensor([text + [-1] * (longest - len(text)) for text in texts])})

    def _maskable_places(self, target: Sequence[int]) -> range:
        """The places of a target that can be masked."""
        return range(self.canvas(len(target)) - (not self.ends))

    def _draw_noise(self, rows: Rows, row: int, number: int, target: Sequence[int]) -> Iterator[bool]:
        """Whether each place of the target with this number is masked. Over the targets and blocks of an example, the
        shares of masked places spread evenly."""
        places = len(self._maskable_places(target))
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

    def _partial_text(self, example: Example) -> list[int]:
        """The tokens of a query's partly written text, without its end; empty if it has none. Raises DataError."""
        text = example.labels.get("text")
        if text is None:
            return []
        if not isinstance(text, str):
            raise DataError(f"'text' must be a string with {MASK_NAME} where a token is missing, not {text!r:.40}")
        first, *rest = text.split(MASK_NAME)
        tokens = self._piece(first)
        for piece in rest:
            tokens += [self.mask_id, *self._piece(piece)]
        if not rest:
            raise DataError(f"'text' has no gap ({text!r:.60}); write {MASK_NAME} for each token to fill in")
        if len(tokens) >= self.max_tokens:
            raise DataError(
                f"'text' has {len(tokens)} tokens, but max_tokens is {self.max_tokens}, including the end; use a "
                "shorter text"
            )
        return tokens

    def _piece(self, text: str) -> list[int]:
        """The tokens of a piece between gaps. A blank at its end would be a token of its own for some tokenizers.
        Raises DataError for unknown words, which would be lost in the text."""
        (tokens,) = self.encode([text.rstrip()])
        unknown = self.encode.special_ids
        if not unknown.isdisjoint(tokens):
            word = next((word for word in text.split() if not unknown.isdisjoint(self.encode([word])[0])), text)
            raise DataError(f"'text' has {word!r:.60}, which the encoder's vocabulary cannot write; replace it")
        return tokens
