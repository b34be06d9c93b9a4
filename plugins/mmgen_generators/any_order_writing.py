"""Writes texts from [MASK]s, block by block: passes over open places, lengths, gaps, rows and caches shared by texts.

The texts of an input, G of them, share one copy of the input and its cached keys and values, as in training; finished
blocks are cached too. Within a block every pass reads all its places again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from mmgen.examples import Generation
from mmgen.objectives import MASK_NAME, Sequencer
from mmgen.parts import Backbone
from mmgen.sampling import derive, draw, seeds_of_texts
from mmgen.sequence import Prefix
from mmgen.tensors import NOISY, PAD, WRITTEN, Batch, Layout, Slots

from . import AnyOrderDecoding
from .any_order_targets import PARTIAL
from .open_places import masked_again, places_to_keep, predict
from .stepwise import rows_to_keep

if TYPE_CHECKING:
    from .any_order import AnyOrderGenerator

MOST_ROUNDS = 8  # of sampling, until every input has enough different texts


@dataclass(frozen=True)
class Text:
    """One written text: its tokens, the mean log-probability of those that were written, and the tokens after each
    pass, [MASK] where a place was open."""

    tokens: tuple[int, ...]
    score: float
    passes: tuple[tuple[int, ...], ...]


def write(
    generator: AnyOrderGenerator, model: Sequencer, batch: Batch, options: AnyOrderDecoding
) -> list[list[Generation]]:
    """`options.num_return_sequences` different texts for each example, best first. If sampling finds fewer, they are
    repeated."""
    count = options.num_return_sequences
    distinct: list[dict[tuple[int, ...], Text]] = [{} for _ in batch.ids]
    for number in range(MOST_ROUNDS if count > 1 else 1):
        seeds = None if batch.seeds is None else derive(batch.seeds, number)
        written = Writer(generator, model, replace(batch, seeds=seeds), options).texts()
        for texts, more in zip(distinct, written, strict=True):
            for text in more:
                texts.setdefault(text.tokens, text)
        if all(len(texts) >= count for texts in distinct):
            break
    best = [sorted([*texts.values()][:count], key=lambda text: -text.score) for texts in distinct]
    return [
        [_generation(model.backbone, id_, text) for text in (texts * count)[:count]]
        for id_, texts in zip(batch.ids, best, strict=True)
    ]


def _generation(backbone: Backbone, id_: str, text: Text) -> Generation:
    passes = tuple(_with_gaps(backbone, tokens) for tokens in text.passes)
    return Generation(id_, backbone.decode_text(text.tokens), text.tokens, text.score, passes=passes)


def _with_gaps(backbone: Backbone, tokens: Sequence[int]) -> str:
    """A partly written text, `MASK_NAME` for each open place."""
    runs = itertools.groupby(tokens, lambda token: token == backbone.mask_id)
    texts = [" ".join(MASK_NAME for _ in run) if is_gap else backbone.decode_text(run) for is_gap, run in runs]
    return " ".join(filter(None, texts))


class Passes:
    """Encodes the blocks of texts behind B inputs.

    cached  whether keys and values of inputs and finished blocks are kept, if the backbone has a cache; otherwise every
            pass encodes them again
    """

    def __init__(self, model: Sequencer, prefix: Prefix, block: int, cached: bool = True) -> None:
        self.model, self.prefix, self.block = model, prefix, block
        self.cache = model.backbone.new_cache() if cached and model.backbone.caches else None
        self.finished = 0  # places of finished blocks in the cache

    def first_states(self) -> Tensor:
        """(B, H) the state of each input's first slot."""
        slots = self.prefix.slots
        first = torch.zeros_like(slots.layout.real)
        first[:, 0] = True
        return self.model.backbone.states_at(slots, first, self.cache)

    def logits(self, ids: Tensor, real: Tensor, open_places: Tensor, first: int) -> Tensor:
        """(n, V) logits at the open places of the blocks that begin at place `first`. ids, real (B, G, C);
        open_places (B, G, W) bool."""
        clean, size = slice(self.finished, first), open_places[0].numel()
        slots = self._slots(ids, real, slice(first, first + open_places.shape[2]), NOISY)
        if first > clean.start:
            slots = self._slots(ids, real, clean, WRITTEN).followed_by(slots)
        if self.cache is None or not len(self.cache):
            slots = self.prefix.slots.followed_by(slots)
        mask = torch.zeros_like(slots.layout.real)
        mask[:, -size:] = open_places.flatten(1)
        states = self.model.backbone.states_at(slots, mask, self.cache)
        if self.cache is not None:
            self.cache.forget(size)
            self.finished = first
        logits = self.model.backbone.logits(states).float()
        # checkpoints may pad the embeddings beyond the vocabulary
        return logits[..., : len(self.model.backbone.tokenizer)]

    def select(self, rows: Tensor) -> None:
        """Continue with these inputs only."""
        self.prefix = self.prefix.select(rows)
        if self.cache is not None:
            self.cache.select(rows)

    def _slots(self, ids: Tensor, real: Tensor, places: slice, role: int) -> Slots:
        """The slots of these places of all texts, text by text."""
        ids, real = ids[:, :, places], real[:, :, places]
        rows, texts, size = ids.shape
        place = torch.arange(places.start, places.start + size, device=ids.device).expand(texts, -1)
        group = torch.arange(1, texts + 1, device=ids.device).unsqueeze(1).expand(-1, size)
        offsets = place.flatten().expand(rows, -1)
        roles = torch.where(real, role, PAD).flatten(1)
        layout = Layout(roles, group.flatten().expand(rows, -1), offsets // self.block + 1)
        return self.model.written(self.prefix, ids.flatten(1), offsets, layout)


class Writer:
    """Writes G texts for each of B inputs: samples, or, with predicted lengths and without sampling, one text for each
    of the most probable lengths, of which the best is kept. C places each:

    ids       (B, G, C) tokens, [MASK] at places that are still open
    real      (B, G, C) bool: places of a text
    open      (B, G, C) bool: places to be written; the others were given
    log_prob  (B, G, C) of each token, in the pass that wrote it; 0 if it was given
    may_end   (B,) bool: whether an end token may be written
    seeds     (B, G) of the texts
    """

    def __init__(
        self,
        generator: AnyOrderGenerator,
        model: Sequencer,
        batch: Batch,
        options: AnyOrderDecoding,
        cached: bool = True,
    ) -> None:
        reader, backbone, prefix = generator.reader, model.backbone, model.prefix(batch)
        self.options, self.block, device = options, reader.block, prefix.free.device
        self.end_id, self.mask_id = backbone.end_id, backbone.mask_id
        self.passes = Passes(model, prefix, reader.block, cached)
        self.refused = torch.zeros(len(backbone.tokenizer), dtype=torch.bool, device=device)
        self.refused[[*backbone.forbidden_ids]] = True
        partial = batch.label(PARTIAL)
        partial = torch.full((len(prefix), 1), -1, device=device) if partial is None else partial
        partial_length = (partial >= 0).sum(1, keepdim=True)  # (B, 1) tokens of the partly written text
        most_texts = max(options.lengths, options.num_return_sequences)
        self.seeds = seeds_of_texts(batch.seeds, len(prefix), most_texts, device)
        lengths, self.length_log_prob = self._lengths(generator, reader.max_tokens)
        canvases = torch.tensor([[reader.canvas(count + 1)] for (count,) in partial_length.tolist()], device=device)
        places = torch.where(partial_length > 0, canvases, lengths)  # (B, G)
        self.free = partial_length == 0  # (B, 1) whether nothing was given
        self.may_end = self.free.squeeze(1) & reader.ends  # (B,)
        place = torch.arange(int(places.max()), device=device).expand(*places.shape, -1)
        self.real = place < places.unsqueeze(2)
        if not options.temperature:  # the texts of an input with a given text would be equal
            self.real &= self.free.unsqueeze(2) | (torch.arange(places.shape[1], device=device) == 0).view(1, -1, 1)
        ends = torch.where(partial_length > 0, partial_length, places - int(not reader.ends))  # (B, G) first given end
        shown = F.pad(partial, (0, place.shape[2] - partial.shape[1]), value=-1).unsqueeze(1)  # (B, 1, C)
        self.ids = torch.where(place < ends.unsqueeze(2), self.mask_id, self.end_id)
        self.ids = torch.where(shown >= 0, shown, self.ids)
        self.open = self.real & (self.ids == self.mask_id)
        self.log_prob = torch.zeros(place.shape, device=device)
        self.written = self.open.clone()
        self.active = torch.arange(len(prefix), device=device)
        self.trace: list[Tensor] = []

    def _lengths(self, generator: AnyOrderGenerator, most: int) -> tuple[Tensor, Tensor | None]:
        """The lengths (B, G) of texts, and their log-probabilities; None if lengths are not predicted."""
        count = self.options.num_return_sequences
        if generator.reader.ends:
            return torch.full_like(self.seeds[:, :count], most), None
        log_probs = generator.length_log_probs(self.passes.first_states())  # (B, max_tokens)
        if self.options.temperature:
            shares = (log_probs.double() / self.options.temperature).softmax(-1)
            classes = draw(shares.unsqueeze(1), derive(self.seeds[:, :count], -1))
        else:
            classes = log_probs.topk(min(self.options.lengths, most), -1).indices
        return classes + 1, log_probs.gather(1, classes)

    def texts(self) -> list[list[Text]]:
        """The texts of each input: samples, or the best."""
        for first in range(0, self.open.shape[2], self.block):
            self._write_block(slice(first, first + self.block))
        return self._results()

    def _write_block(self, block: slice) -> None:
        """Passes over a block until no place is open."""
        places = self.open[:, :, block].clone()
        number, total = 0, places.sum(-1)
        while self.open[:, :, block].any():
            self._drop_finished()
            open_places = self.open[:, :, block]
            real = self.real[self.active]
            logits = self.passes.logits(self.ids[self.active], real, open_places[self.active], block.start)
            row, text, place = open_places.nonzero().unbind(1)
            refused = self.refused.repeat(len(logits), 1)
            refused[:, self.end_id] = ~self.may_end[row]
            seeds = derive(derive(self.seeds[row, text], block.start + place), number)
            predictions = predict(logits, refused, place, seeds, self.options).at(open_places)
            keep = places_to_keep(predictions, open_places, number, total, self.options)
            self.ids[:, :, block] = torch.where(keep, predictions.tokens, self.ids[:, :, block])
            self.log_prob[:, :, block] = torch.where(keep, predictions.log_prob, self.log_prob[:, :, block])
            self.open[:, :, block] = open_places & ~keep
            if self.options.remask:
                again = masked_again(self.log_prob[:, :, block], places, number, self.options)
                self.ids[:, :, block] = torch.where(again, self.mask_id, self.ids[:, :, block])
                self.open[:, :, block] = again
            else:
                self._close_ended()
            self.trace.append(self.ids.clone())
            number += 1
        self._close_ended()

    def _close_ended(self) -> None:
        """Nothing more is written behind an end token without open places before it."""
        settled = ~self.open.cumsum(-1).bool()
        ended = (settled & self.real & (self.ids == self.end_id)).any(-1, keepdim=True)
        self.open &= ~ended

    def _drop_finished(self) -> None:
        stay = rows_to_keep(~self.open[self.active].flatten(1).any(1))
        if len(stay) < len(self.active):
            self.active = self.active[stay]
            self.passes.select(stay)

    def _results(self) -> list[list[Text]]:
        place = torch.arange(self.ids.shape[2], device=self.ids.device)
        last = torch.where((self.ids == self.end_id) & self.real, place, self.real.sum(-1, keepdim=True) - 1)
        length = last.masked_fill(~self.real, self.ids.shape[2]).amin(-1) + 1  # (B, G)
        counted = self.written & (place < length.unsqueeze(2))
        total, number = (self.log_prob * counted).sum(-1), counted.sum(-1)
        if self.length_log_prob is not None:
            total = total + self.length_log_prob * self.free
            number = number + self.free.long()
        scores = total / number.clamp(min=1)
        best = scores.masked_fill(~self.real.any(-1), -torch.inf)
        trace = torch.stack(self.trace, 2).tolist() if self.trace else []  # (B, G, passes, C)
        rows = []
        for row, (ids, lengths) in enumerate(zip(self.ids.tolist(), length.tolist(), strict=True)):
            groups = range(len(ids)) if self.options.temperature else [int(best[row].argmax())]
            rows.append(
                [
                    _text(ids[g][: lengths[g]], float(scores[row, g]), trace[row][g] if trace else [], self.mask_id)
                    for g in groups
                ]
            )
        return rows


def _text(tokens: list[int], score: float, passes: list[list[int]], mask_id: int) -> Text:
    """A text, with the passes until it was complete."""
    stands = [tuple(ids[: len(tokens)]) for ids in passes]
    needed = next((number for number, ids in enumerate(stands, 1) if ids == tuple(tokens)), 0)
    return Text(tuple(tokens), score, tuple(stands[:needed]))
