"""Classes of regions: what a detector takes each for, and how sure it is. A store keeps them, and models that hide
regions predict them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .stored_classes import MOST

TOP = 10  # classes of a region that are kept of a detector's distribution
LOOSE = 1e-3  # by which probabilities, rounded, may exceed 1 together


@dataclass(frozen=True)
class Classes:
    """Of every region the classes that are most probable. The rest of a row is the share of all other classes, and of
    nothing at all.

    names          of all C classes there are; all images of a store share them
    ids            (R, k) int32: places among the names; -1 where fewer than k are known
    probabilities  (R, k) float32, of those classes; 0 where there is none
    """

    names: tuple[str, ...]
    ids: np.ndarray
    probabilities: np.ndarray

    @classmethod
    def surest(cls, names: Sequence[str], probabilities: np.ndarray, count: int = TOP) -> Classes:
        """The `count` most probable classes of distributions (R, C), the most probable first."""
        order = np.argsort(-probabilities, 1, kind="stable")[:, :count]
        return cls(tuple(names), order.astype(np.int32), np.take_along_axis(probabilities, order, 1).astype(np.float32))

    @classmethod
    def unknown(cls, names: tuple[str, ...], top: int, regions: int) -> Classes:
        """Of regions of which no class is known, `top` places each."""
        return cls(names, np.full((regions, top), -1, np.int32), np.zeros((regions, top), np.float32))

    @property
    def known(self) -> np.ndarray:
        """(R,) bool: regions of which a class is known."""
        known: np.ndarray = (self.probabilities * (self.ids >= 0)).sum(1) > 0
        return known

    def of(self, regions: np.ndarray | slice) -> Classes:
        """Of some of the regions only."""
        return Classes(self.names, self.ids[regions], self.probabilities[regions])

    def distributions(self) -> np.ndarray:
        """(R, C) float32: what is kept, divided by its sum; 0 throughout where no class is known."""
        regions, there = np.arange(len(self.ids))[:, None], self.ids >= 0
        wide = np.zeros((len(self.ids), len(self.names) + 1), np.float32)  # the last takes what is no class
        np.add.at(wide, (regions, np.where(there, self.ids, len(self.names))), self.probabilities)
        kept = wide[:, :-1]
        return kept / np.maximum(kept.sum(1, keepdims=True), np.finfo(np.float32).tiny)

    def behind_unknown(self) -> Classes:
        """With one more region in front, of which no class is known."""
        first = Classes.unknown(self.names, self.ids.shape[1], 1)
        ids = np.concatenate([first.ids, self.ids])
        return Classes(self.names, ids, np.concatenate([first.probabilities, self.probabilities]))

    def wrong(self, regions: int) -> str:
        """Why a store cannot keep them for so many regions; empty where it can."""
        ids, probabilities, count = np.asarray(self.ids), np.asarray(self.probabilities), len(self.names)
        if not 0 < count <= MOST:
            return f"{count} names of classes; there are 1 to {MOST}"
        if ids.dtype.kind not in "iu" or probabilities.dtype.kind != "f":
            return f"ids and probabilities of classes are {ids.dtype} and {probabilities.dtype}"
        if ids.ndim != 2 or len(ids) != regions or probabilities.shape != ids.shape or not 0 < ids.shape[1] <= count:
            return f"ids and probabilities of {count} classes are of shape {ids.shape} and {probabilities.shape}"
        if ids.size and not -1 <= ids.min() <= ids.max() < count:
            return f"a class of number {ids.max() if ids.max() >= count else ids.min()}, and there are {count}"
        if not (probabilities >= 0).all() or not (probabilities.sum(1) <= 1 + LOOSE).all():
            return "probabilities of a region's classes are below 0, more than 1 together, or no numbers"
        return ""
