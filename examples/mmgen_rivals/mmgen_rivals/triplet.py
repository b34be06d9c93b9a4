"""The triplet loss of MDN, and its exemplars: training pictures by the distance of their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from mmgen.errors import DataError
from mmgen.examples import Example, ResolvedExample
from mmgen.features.embedder import StoreReader
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Record
from mmgen.tensors import Batch, Loss, Targets
from torch import Tensor

from . import Triplet

ROLES = ("supporting", "contrasting")


class Neighbours:
    """Training pictures by the distance of their pooled features.

    examples  one for each picture, in order
    """

    def __init__(self, candidates: Sequence[Example], reader: StoreReader) -> None:
        self.reader = reader
        by_picture: dict[str, Example] = {}
        for example in candidates:
            by_picture.setdefault(self._key_of_picture(example), example)
        self.examples = list(by_picture.values())
        self.places = {key: place for place, key in enumerate(by_picture)}
        features = [self._mean_features(example) for example in self.examples]
        self.features = np.stack(features) if features else np.zeros((0, 1), np.float32)  # (n, D)
        self.squares = np.square(self.features).sum(1)  # (n,)
        self._ranked: dict[tuple[str, tuple[int, ...]], list[Example]] = {}

    def at(self, example: ResolvedExample, ranks: Sequence[int]) -> list[Example]:
        """The examples of other pictures with these ranks, 1 for the nearest; the last one for a rank beyond them."""
        key = self._key_of_picture(example)
        if (key, tuple(ranks)) not in self._ranked:
            distances = self.squares - 2 * (self.features @ self._mean_features(example))  # squared, but for a constant
            order = distances.argsort(kind="stable")
            order = order[order != self.places.get(key, -1)]
            if len(order) < 2:
                raise DataError(f"example '{example.id}': a triplet needs at least two other training pictures")
            chosen = [self.examples[order[min(rank, len(order)) - 1]] for rank in ranks]
            self._ranked[key, tuple(ranks)] = chosen
        return self._ranked[key, tuple(ranks)]

    def _key_of_picture(self, example: Example) -> str:
        value = first_alternatives(example).inputs.get(self.reader.field)
        return value.key if isinstance(value, Record) else repr(value)

    def _mean_features(self, example: Example) -> np.ndarray:
        regions = self.reader.read(first_alternatives(example))
        mean: np.ndarray = np.concatenate([picture.features for picture in regions], dtype=np.float32).mean(0)
        return mean


def first_alternatives(example: Example) -> ResolvedExample:
    """The example with the first of each input's alternatives."""
    inputs = {name: value[0] if isinstance(value, tuple) else value for name, value in example.inputs.items()}
    return ResolvedExample(example.id, inputs, example.targets, example.facts, example.labels)


class TripletTargets(TargetReader):
    """Reads the exemplars of every row, in loader workers. Each worker measures the training pictures once."""

    reads_candidates = True

    def __init__(self, config: Triplet) -> None:
        self.picture, self.ranks = config.picture, (config.supporting, config.contrasting)
        self._neighbours: tuple[Sequence[Example], Neighbours] | None = None

    def collate(self, rows: Rows) -> Targets:
        chosen = [self.neighbours(rows).at(example, self.ranks) for example in rows.examples]
        labels: dict[str, Tensor] = {}
        for role, exemplars in zip(ROLES, zip(*chosen, strict=True), strict=True):
            read = [first_alternatives(example) for example in exemplars]
            for name, reader in rows.readers.items():
                collated = reader.collate([reader.read(example) for example in read])
                labels |= {f"{role}/{name}/{key}": tensor for key, tensor in collated.items()}
        return Targets({"loss": len(rows.examples)}, labels)

    def neighbours(self, rows: Rows) -> Neighbours:
        """The training pictures, measured once."""
        if self._neighbours is None or self._neighbours[0] is not rows.candidates:
            reader = rows.readers[self.picture]
            assert isinstance(reader, StoreReader)  # as `Triplet.errors` says
            self._neighbours = rows.candidates, Neighbours(rows.candidates, reader)
        return self._neighbours[1]


class TripletObjective(Objective):
    """max(0, d(s, s+) - d(s, s-) + margin), where s is the state of a row's first slot and d the squared distance."""

    def __init__(self, config: Triplet) -> None:
        super().__init__()
        self.reader, self.margin = TripletTargets(config), config.margin

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        anchor = model.encode(batch).first.float()
        near, far = (
            model.encode(exemplars(batch, targets.labels, role)).first.float() for role in ROLES
        )  # (B, H) each
        distances = [(anchor - exemplar).square().sum(1) for exemplar in (near, far)]
        return Loss({"loss": (distances[0] - distances[1] + self.margin).clamp(min=0).sum()})


def exemplars(batch: Batch, labels: Mapping[str, Tensor], role: str) -> Batch:
    """The exemplars of a role as a batch."""
    inputs: dict[str, dict[str, Tensor]] = {}
    for label, tensor in labels.items():
        kind, name, key = label.split("/")
        if kind == role:
            inputs.setdefault(name, {})[key] = tensor
    return replace(batch, inputs=inputs, targets={})
