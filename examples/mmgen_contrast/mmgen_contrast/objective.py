"""The objective: two inputs as vectors, a trained temperature, and the rows that do not count as negatives."""

from __future__ import annotations

import math
import zlib
from dataclasses import replace

import torch
import torch.nn.functional as F
from mmgen.examples import Prediction
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.tensors import Batch, Loss, Targets
from torch import Tensor, nn

from . import ContrastiveLoss

LARGEST_SCALE = math.log(100)  # CLIP's limit
DIGITS = 6  # of the numbers of predicted vectors, as exact as single precision


class ContrastiveReader(TargetReader):
    """Notes what each row shows, so that rows with the same picture or caption do not count as negatives."""

    def __init__(self, inputs: tuple[str, str]) -> None:
        self.inputs = inputs

    def collate(self, rows: Rows) -> Targets:
        shown = {
            name: torch.tensor([zlib.crc32(repr(row.inputs.get(name, row.id)).encode()) for row in rows.examples])
            for name in self.inputs
        }
        return Targets({"loss": len(rows.examples)}, shown)


class ContrastiveObjective(Objective):
    """See `ContrastiveLoss`. Each input is encoded alone; its vector, of length 1, is a linear layer of [CLS]."""

    def __init__(self, config: ContrastiveLoss, width: int) -> None:
        super().__init__()
        self.reader, self.inputs = ContrastiveReader(config.inputs), config.inputs
        self.projections = nn.ModuleList(nn.Linear(width, config.projection_dim, bias=False) for _ in config.inputs)
        self.logit_scale = nn.Parameter(torch.tensor(config.logit_scale_init_value))

    def vectors(self, model: Sequencer, batch: Batch) -> list[Tensor]:
        """(B, W) for each of the two inputs."""
        alone = [replace(batch, inputs={name: batch.inputs[name]}) for name in self.inputs]
        states = [model.encode(rows).first for rows in alone]
        projected = [projection(first) for projection, first in zip(self.projections, states, strict=True)]
        return [F.normalize(vectors.float(), dim=1) for vectors in projected]

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        left, right = self.vectors(model, batch)
        scores = left @ right.T * self.logit_scale.clamp(max=LARGEST_SCALE).exp()  # (B, B)
        same = torch.stack([ids[:, None] == ids for ids in targets.labels.values()]).any(0).fill_diagonal_(False)
        scores = scores.masked_fill(same, -math.inf)
        partners = torch.arange(len(scores), device=scores.device)
        both = [F.cross_entropy(logits, partners, reduction="sum") for logits in (scores, scores.T)]
        return Loss({"loss": torch.stack(both).mean()})


class PredictingObjective(ContrastiveObjective):
    """See `Contrastive`."""

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        """The vectors, to DIGITS decimals, and their cosine similarity."""
        left, right = self.vectors(model, batch)
        similarities = (left * right).sum(1).tolist()
        rows = zip(*(vectors.double().round(decimals=DIGITS).tolist() for vectors in (left, right)), strict=True)
        return [
            Prediction(id_, dict(zip(self.inputs, vectors, strict=True)), similarity)
            for id_, vectors, similarity in zip(batch.ids, rows, similarities, strict=True)
        ]
