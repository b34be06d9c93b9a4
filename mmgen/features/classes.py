"""Classes of regions: the k most probable of a detector for each region, made from distributions and expanded again.

Feature stores save them, and models that mask regions predict them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TOP = 10  # classes per region that are saved of a detector's distribution
TOLERANCE = 1e-3  # by which the sum of rounded probabilities may exceed 1


@dataclass(frozen=True)
class Classes:
    """The k most probable classes of each region. The rest of a row's probability belongs to all other classes and to
    the background.

    names          of all C classes; all images of a store share them
    ids            (R, k) int32: indices into the names; -1 where fewer than k classes are known
    probabilities  (R, k) float32, of those classes; 0 where the class is unknown
    """

    names: tuple[str, ...]
    ids: np.ndarray
    probabilities: np.ndarray

    @classmethod
    def surest(cls, names: Sequence[str], probabilities: np.ndarray, count: int = TOP) -> Classes:
        """The `count` most probable classes of distributions (R, C), the most probable first."""
        order = np.argsort(-probabilities, 1, kind="stable")[:, :count]
        return cls(tuple(names), order.astype(np.int32), np.take_along_axis(probabilities, order, 1).astype(np.float32))

    @property
    def known(self) -> np.ndarray:
        """(R,) bool: regions with at least one known class."""
        known: np.ndarray = (self.probabilities * (self.ids >= 0)).sum(1) > 0
        return known

    def __getitem__(self, regions: np.ndarray | slice) -> Classes:
        """The classes of some of the regions."""
        return Classes(self.names, self.ids[regions], self.probabilities[regions])

    def distributions(self) -> np.ndarray:
        """(R, C) float32: the probabilities, normalised over the saved classes; all 0 where no class is known."""
        regions, known = np.arange(len(self.ids))[:, None], self.ids >= 0
        wide = np.zeros((len(self.ids), len(self.names) + 1), np.float32)  # the last column collects unknown classes
        np.add.at(wide, (regions, np.where(known, self.ids, len(self.names))), self.probabilities)
        saved = wide[:, :-1]
        return saved / np.maximum(saved.sum(1, keepdims=True), np.finfo(np.float32).tiny)

    def behind_unknown(self) -> Classes:
        """With one more region in front, whose class is unknown."""
        front = ((1, 0), (0, 0))
        return Classes(self.names, np.pad(self.ids, front, constant_values=-1), np.pad(self.probabilities, front))

    def error(self, regions: int) -> str:
        """Why a store cannot save these classes for so many regions; empty if it can."""
        ids, probabilities, count = self.ids, self.probabilities, len(self.names)
        if not ids.shape == probabilities.shape == (regions, *ids.shape[1:2]) or not 0 < ids.shape[1] <= count:
            return f"expected ids and probabilities ({regions}, 1 to {count}), not {ids.shape} {probabilities.shape}"
        if not ((ids >= -1) & (ids < count)).all():
            return f"class ids must be -1 to {count - 1}"
        if not (probabilities >= 0).all() or not (probabilities.sum(1) <= 1 + TOLERANCE).all():
            return "class probabilities of a region must be numbers of at least 0 with a sum of at most 1"
        return ""
