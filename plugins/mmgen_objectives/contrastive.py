"""Contrastive objectives: two inputs of a whole batch as vectors, a trained temperature, what counts as a negative."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.objectives import BatchObjective, Rows, Sequencer, TargetReader
from mmgen.tensors import Batch, Prediction, Targets

from . import Contrast

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


class ContrastiveLossObjective(BatchObjective):
    """See `ContrastiveLoss`. Each input is encoded alone; its vector, of length 1, is a linear layer of [CLS]."""

    def __init__(self, config: Contrast, width: int) -> None:
        super().__init__()
        self.reader, self.inputs = ContrastiveReader(config.inputs), config.inputs
        self.projections = nn.ModuleList(nn.Linear(width, config.projection_dim, bias=False) for _ in config.inputs)
        self.logit_scale = nn.Parameter(torch.tensor([config.logit_scale_init_value]))  # FSDP cuts no single number

    def features(self, model: Sequencer, batch: Batch, targets: Targets) -> Mapping[str, Tensor]:
        features: dict[str, Tensor] = {}
        for place, (name, vectors) in enumerate(self.vectors(model, batch).items()):
            features[f"vectors {place}"] = vectors
            features[f"shown {place}"] = targets.labels[name]  # (B,)
        return features

    def vectors(self, model: Sequencer, batch: Batch) -> dict[str, Tensor]:
        """(B, W) for each of the two inputs that the batch has, of length 1."""
        return {
            name: F.normalize(projection(model.encode(replace(batch, inputs={name: batch.inputs[name]})).first), dim=1)
            for name, projection in zip(self.inputs, self.projections, strict=True)
            if name in batch.inputs
        }

    def compare(self, features: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        scores = features["vectors 0"] @ features["vectors 1"].T  # (n, n)
        scores = scores * self.logit_scale.clamp(max=LARGEST_SCALE).exp()
        shown = [features[f"shown {place}"] for place in range(2)]
        same = torch.stack([ids.unsqueeze(0) == ids.unsqueeze(1) for ids in shown]).any(0)
        same.fill_diagonal_(False)
        scores = scores.masked_fill(same, -math.inf)
        partners = torch.arange(len(scores), device=scores.device)
        both = [F.cross_entropy(logits, partners, reduction="sum") for logits in (scores, scores.T)]
        return {"loss": torch.stack(both).mean()}


class ContrastiveObjective(ContrastiveLossObjective):
    """See `Contrastive`."""

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        """The vectors, to DIGITS decimals, and the cosine similarity of two; 1 for the vector of one input."""
        by_input = {name: vectors.float() for name, vectors in self.vectors(model, batch).items()}
        first, *_, last = [*by_input.values()] * 2
        similarities = (first * last).sum(1).tolist()
        rows = zip(*(vectors.tolist() for vectors in by_input.values()), strict=True)
        return [
            Prediction(
                id_,
                {name: [round(number, DIGITS) for number in row] for name, row in zip(by_input, vectors, strict=True)},
                similarity,
            )
            for id_, vectors, similarity in zip(batch.ids, rows, similarities, strict=True)
        ]
