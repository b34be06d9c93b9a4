"""Writing with Monte Carlo dropout: the mean of the words' probabilities over several networks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from mmgen import Decoding
from mmgen.examples import Generation
from mmgen.objectives import Sequencer
from mmgen.prompts import Prompts
from mmgen.search import Stepper, as_generations, search
from mmgen.sequence import Prefix
from mmgen.tensors import Batch
from mmgen_generators.causal import CausalGenerator
from mmgen_generators.causal_writing import CausalStepper
from torch import Tensor

from . import MonteCarloDecoding
from .backbone import LstmBackbone
from .fusion import drawn_network


class MeanStepper:
    """Steppers of the same inputs, the n-th with network n: the mean of their probabilities."""

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        self.steppers = steppers

    def next_logits(self, written: Tensor) -> Tensor:
        passes = []
        for number, stepper in enumerate(self.steppers):
            with drawn_network(number):
                passes.append(stepper.next_logits(written).log_softmax(-1))
        return torch.stack(passes).logsumexp(0) - math.log(len(passes))

    def reorder_cache(self, rows: Tensor) -> None:
        for stepper in self.steppers:
            stepper.reorder_cache(rows)


class MonteCarloGenerator(CausalGenerator):
    """See `MonteCarlo`."""

    def prefix(self, model: Sequencer, batch: Batch) -> Prefix:
        prefix = model.prefix(batch)
        return model.backbone.shortened(prefix) if isinstance(model.backbone, LstmBackbone) else prefix

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        passes = options.passes if isinstance(options, MonteCarloDecoding) else 0
        plain = Decoding(**options.model_dump(exclude={"passes"}))  # transformers' options
        if not passes:
            return super().generate(model, batch, plain)
        prefix, end, prompts = model.prefix(batch), model.backbone.end_id, Prompts.of(batch)
        steppers = [CausalStepper(model, prefix, end, prompts) for _ in range(passes)]
        hypotheses = search(
            MeanStepper(steppers), steppers[0].begin, plain, model.backbone, self.max_tokens, batch.seeds
        )
        return as_generations(hypotheses, batch.ids, model.backbone, prompts)
