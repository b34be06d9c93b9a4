"""The masked-decoding generator: a [MASK] that sees X and y_<t predicts P(y_t | X, y_<t) (bertgen, section 3.2).

All positions of all questions of one input are trained in one pass: a question y_1..y_T is laid out as
y_1..y_(T-1), m_1..m_T, where m_t is a [MASK] with y_t's position. `mmgen.attention` defines which slot sees which.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmgen.objectives import Sequencer
from mmgen.parts import Backbone
from mmgen.prompts import Prompts
from mmgen.sequence import Prefix
from mmgen.tensors import MASK, WRITTEN, Slot

from . import Masked
from .masked_writing import MaskedStepper
from .stepwise import StepwiseGenerator, StepwiseTargets


class MaskedTargets(StepwiseTargets):
    """Lays out targets, in loader workers."""

    def target_slots(self, target: Sequence[int], group: int) -> list[Slot]:
        """The 2T - 1 slots of one target: y_1..y_(T-1), m_1..m_T."""
        written: list[Slot] = [(y, t - 1, WRITTEN, group, t, -100) for t, y in enumerate(target[:-1], 1)]
        masks: list[Slot] = [(self.mask_id, t - 1, MASK, group, t, y) for t, y in enumerate(target, 1)]
        return written + masks

    def slots(self, tokens: int) -> int:
        return 2 * tokens - 1


class MaskedGenerator(StepwiseGenerator):
    """Trains on targets and generates texts."""

    def __init__(self, config: Masked, backbone: Backbone) -> None:
        super().__init__()
        self.reader = MaskedTargets(backbone, config.max_tokens)

    def stepper(self, model: Sequencer, prefix: Prefix, prompts: Prompts | None) -> MaskedStepper:
        return MaskedStepper(model, prefix, prompts)
