"""Classes of regions: the k most probable of a detector, made from distributions and expanded again; masked regions.

Feature stores save them, and models that mask regions predict them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import DataError
from ..tensors import Hiding

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
        ids, shares = self.ids, self.probabilities
        shaped = ids.shape == shares.shape == (regions, *ids.shape[1:2]) and 0 < ids.shape[1] <= len(self.names)
        known = shaped and ((ids >= -1) & (ids < len(self.names))).all()
        if known and (shares >= 0).all() and (shares.sum(1) <= 1 + TOLERANCE).all():
            return ""
        return (
            f"classes must be ids ({regions}, k) from -1 to {len(self.names) - 1}, with probabilities whose sum is at "
            f"most 1 for a region; got {ids.shape} and {shares.shape}"
        )


class Regions(NamedTuple):
    """The regions of a picture. `hidden`: (R,) bool, masked regions, whose features the model does not see."""

    features: np.ndarray  # (R, D) float16 if they are stored as float16, else float32
    boxes: np.ndarray | None = None  # (R, 4) float32
    classes: Classes | None = None
    hidden: np.ndarray | None = None  # None if no region is masked


def hide_regions(
    classes: Classes | None, count: int, names: Sequence[str] | None, draw: random.Random, hiding: Hiding
) -> tuple[np.ndarray, Tensor]:
    """Draw which of a picture's `count` regions are masked, (R,) bool, and the labels: (R, C) distributions over the
    classes `names`, -100 at regions that are not predicted. A region without a known class is neither masked nor
    predicted.

    A share `hiding.rate` of the regions is predicted, and a share `hiding.replace[0]` of those is masked. The others
    keep their features, since regions are never replaced by other regions. Raises DataError for other class names."""
    if not names:
        raise DataError("cannot mask regions to predict their classes, because the features have no classes")
    if classes is not None and classes.names != tuple(names):
        raise DataError("the class names of the regions differ from those that are predicted")
    predicted, hidden = np.zeros((2, count), bool)
    labels = np.full((count, len(names)), -100, np.float32)
    if classes is None:
        return hidden, torch.from_numpy(labels)
    for place, known in enumerate(classes.known):
        if draw.random() < hiding.rate and known:
            predicted[place], hidden[place] = True, draw.random() < hiding.replace[0]
    labels[predicted] = classes[predicted].distributions()
    return hidden, torch.from_numpy(labels)
