"""The any-order generator: trains on texts with some tokens masked, and writes texts from [MASK]s.

`mmgen_generators.any_order_targets` derives the loss. X never looks at a text, so all questions of an input share one
copy of X, in training and in writing, and the keys and values of X stay exact while a text is written in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.examples import Example, Generation
from mmgen.objectives import Generator, Sequencer, log_probabilities
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets, apply

from . import AnyOrder, AnyOrderDecoding
from .any_order_targets import AnyOrderTargets
from .any_order_writing import write


class AnyOrderGenerator(Generator):
    """Trains on targets and generates texts.

    length_head  with length = "head": the state (B, H) of the first slot -> logits (B, max_tokens) of 1 to max_tokens
                 tokens. Its cross-entropy takes the place of the end token's in the loss, which so remains an upper
                 bound of -log p(text | X)
    """

    reads_as_laid_out = False
    likelihood_kind = "of one drawn order"

    def __init__(self, config: AnyOrder, backbone: Backbone) -> None:
        super().__init__()
        self.reader: AnyOrderTargets = AnyOrderTargets(config, backbone)
        self.blanks_read = (
            "all other words" if config.block is None else f"its block of {config.block} and those before"
        )
        if not self.reader.ends:
            width = backbone.hidden_size
            pooler = nn.Linear(width, width)
            self.length_head = nn.Sequential(pooler, nn.Tanh(), nn.Linear(width, config.max_tokens))

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert targets.tail is not None  # laid out by the reader
        rows, target_ids = model.rows(batch, targets.tail)
        predicted = target_ids != -100
        first = torch.zeros_like(predicted)
        first[:, 0] = not self.reader.ends
        read = predicted | first
        states = model.backbone.states_at(rows, read)
        # packing keeps the order of a row's slots, so that weights in the order of the tail fit the packed rows
        weights = targets.labels["weights"][targets.tail.labels != -100] if "weights" in targets.labels else None
        values = -log_probabilities(model.backbone, states[~first[read]], target_ids[predicted])
        total = values.sum() if weights is None else (values * weights).sum()
        if not self.reader.ends:
            total = total + self._length_loss(states[first[read]], targets.labels["lengths"])
        return Loss({"loss": total})

    def _length_loss(self, first: Tensor, lengths: Tensor) -> Tensor:
        """Summed cross-entropy () of the lengths (B, K) of texts, -100 where there is none; first (B, H)."""
        logits = self.length_head(first).float().unsqueeze(1).expand(-1, lengths.shape[1], -1)
        classes = torch.where(lengths > 0, lengths - 1, -100)
        return F.cross_entropy(logits.flatten(0, 1), classes.flatten(), reduction="sum")

    def length_log_probs(self, first: Tensor) -> Tensor:
        """(B, max_tokens) log-probabilities of lengths, given the states (B, H) of the first slots."""
        return self.length_head(first).float().log_softmax(-1)

    def likelihood(self, model: Sequencer, batch: Batch, examples: Sequence[Example]) -> Tensor:
        """As of texts written in one order, drawn from each text: every token given those before it in the order, and
        the end by the length. Over orders the mean is a lower bound of the log-probability, and minus that of the loss.
        """
        targets, reader = [self.reader.targets(example) for example in examples], self.reader
        tail, text = reader.lay_out_orders(targets)
        predicted = tail.labels != -100
        places = [predicted.nonzero()[:, 0], text[predicted], tail.offsets[predicted]]  # row, text and place
        tail = apply(tail, lambda tensor: tensor.to(model.device))
        values = log_probabilities(model.backbone, *self.predicting_states(model, batch, tail)).tolist()
        known = dict(zip(zip(*(place.tolist() for place in places), strict=True), values, strict=True))
        lengths = None if reader.ends else self.length_log_probs(model.encode(batch).first).tolist()
        results = list[float]()
        for row, texts in enumerate(targets):
            for number, y in enumerate(texts):
                chain, size = [known[row, number, place] for place in reader.maskable_places(y)], len(y) - 1
                # every place behind the end has an end token too
                results += [*chain[:size], sum(chain[size:]) if lengths is None else lengths[row][size]]
        return torch.tensor(results, device=model.device)

    def generate(self, model: Sequencer, batch: Batch, options: AnyOrderDecoding) -> list[list[Generation]]:
        return write(self, model, batch, options)


class BlocksOfOneGenerator(AnyOrderGenerator):
    """Blocks of one token: rows are read as laid out, so attention maps and probes can show them."""

    reads_as_laid_out = True
    likelihood_kind = "exact"
