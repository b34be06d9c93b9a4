"""What generators share: slots of targets as a tail, prompts before texts, searches."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from mmgen import Decoding
from mmgen.attention import padded_length
from mmgen.examples import Generation
from mmgen.objectives import Generator, Sequencer, TextTargets
from mmgen.prompts import Prompts, prompt_slots
from mmgen.search import as_generations, search
from mmgen.sequence import Prefix
from mmgen.tensors import Batch, Slot, Slots, Tail, tail_of


def rows_to_keep(finished: Tensor) -> Tensor:
    """The indices of the rows that are not finished (R,) bool, in order; with some finished ones, if the
    `padded_length` has room for them."""
    count = padded_length(int((~finished).sum()), finished.device)
    return finished.long().argsort(stable=True)[:count].sort().values


def behind_prompts(model: Sequencer, prefix: Prefix, prompts: Tensor | None, slots: Slots) -> Slots:
    """The slots of prompts (R, n, C), if there are some, and then those of their texts."""
    if prompts is None:
        return slots
    return model.written(prefix, *prompt_slots(prompts, model.backbone.pad_id)).followed_by(slots)


class StepwiseTargets(TextTargets):
    """Targets that are written token by token, laid out in loader workers."""

    reads_prompts = True

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        rows = [[slot for k, y in enumerate(texts, 1) for slot in self.target_slots(y, k)] for texts in targets]
        return tail_of(rows, self.pad_id)[0]

    @abc.abstractmethod
    def target_slots(self, target: Sequence[int], group: int) -> list[Slot]:
        """The slots of one target."""


class StepwiseGenerator(Generator):
    """Writes token by token; has no parameters."""

    @abc.abstractmethod
    def stepper(self, model: Sequencer, prefix: Prefix, prompts: Prompts | None) -> Any:
        """A `mmgen.search.Stepper`; its `begin` (R, 1) is the token before each of R searches."""

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        prompts = Prompts.of(batch)
        stepper = self.stepper(model, model.prefix(batch), prompts)
        results = search(stepper, stepper.begin, options, model.backbone, self.max_tokens, batch.seeds)
        return as_generations(results, batch.ids, model.backbone, prompts)
