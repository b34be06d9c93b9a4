"""Readers of pictures: where they are from; pixels and boxes for a network, read as stored features are.

The reader of features cuts, hides and averages regions, before their features are known. It reads the rows of an
identity matrix in place of features, so that its result says which regions each slot consists of, and with which
weights.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmgen_vision.cnn import RoiPooling, fit_picture, stack_pictures
from PIL import Image
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError
from mmgen.examples import All, Example, ResolvedExample
from mmgen.features.embedder import StoreReader
from mmgen.features.images import load_image
from mmgen.features.store import FeatureStore
from mmgen.parts import Picture, Reader, Record
from mmgen.tensors import Hiding

from . import Pictures

MOST = 100  # regions of a picture for an input of features that does not limit them


class PictureSource(Reader):
    """The part of a reader that finds pictures. `pictures`: those of the data by key."""

    def __init__(self, field: str) -> None:
        self.field = field
        self.pictures: Mapping[str, Picture] = {}

    def shown(self, example: ResolvedExample) -> tuple[Any, ...]:
        """The values of the field: pictures, or keys. Raises DataError if there are none."""
        values = example.shown(self.field)
        if not values:
            raise DataError(
                f"example '{example.id}' has no {self.field}; its inputs are: {', '.join(example.inputs) or 'none'}",
            )
        return values

    def picture(self, value: Any, example: str) -> Picture:
        """The picture of a value: a key of the data, or a picture. `example`: its id, for errors. Raises DataError."""
        if isinstance(value, Picture):
            return value
        if not isinstance(value, str):
            raise DataError(f"{self.field} of '{example}' is {value!r:.60}; expected a picture or its key")
        if value not in self.pictures:
            raise DataError(
                f"{self.field} of '{example}': no picture has the key '{value:.60}'; give a picture of the data, or a "
                "file"
            )
        return self.pictures[value]

    def opened(self, value: Any, example: str) -> Image.Image:
        """The image of a value. Raises DataError."""
        try:
            return load_image(self.picture(value, example))
        except (DataError, OSError) as error:
            raise DataError(f"{self.field} of '{example}': {error}") from None

    @staticmethod
    def identity(value: Any) -> object:
        """Equal for values that show equal pictures."""
        return value if isinstance(value, str) else id(value)


@dataclass(frozen=True)
class Seen:
    """One picture: its pixels (h, w, 3) uint8, resized for the network, and the boxes (R, 4) to pool."""

    identity: object  # equal for equal pictures
    pixels: np.ndarray
    boxes: np.ndarray


class PictureReader(PictureSource):
    """Reads pictures of the data, or of a query.

    inner    the reader of features
    pooling  what the boxes of a picture are
    size     side of the network's square, in pixels
    """

    def __init__(self, config: Pictures, inner: StoreReader, pooling: RoiPooling, size: int) -> None:
        super().__init__(config.fields[0])
        self.inner, self.pooling, self.size, self.boxes = inner, pooling, size, config.boxes
        self.hides = inner.hides  # type: ignore[misc]
        self.most = inner.limit or MOST
        inner.width = None  # that of the identity matrix
        self._store: FeatureStore | None = None

    def read(self, example: ResolvedExample) -> Any:
        """The item of the reader of features, and the pictures."""
        values = self.shown(example)
        item = self.inner.read(self.described(example))
        return item, tuple(self.see(value, example.id) for value in values)

    def see(self, value: Any, example: str) -> Seen:
        """The picture of a value, opened. `example`: its id, for errors. Raises DataError."""
        boxes = self.regions_of(value, example).boxes
        assert boxes is not None  # a pooling gives boxes
        pixels = fit_picture(self.opened(value, example), self.size)
        return Seen(self.identity(value), pixels, boxes[: self.most])

    def regions_of(self, value: Any, example: str = "") -> Record:
        """The regions of a picture, which is not opened, with a row of the identity matrix each. Raises DataError."""
        picture = self.picture(value, example)
        record = self.pooling.regions(picture)
        assert record.boxes is not None
        count = len(record.boxes)
        if not count:
            raise DataError(f"picture '{picture.key}' has no boxes; leave the picture out, or give boxes")
        if self.inner.limit is None and count > self.most:
            raise DataError(
                f"picture '{picture.key}' has {count} boxes, but the limit is {self.most}; give fewer boxes"
            )
        return replace(record, features=np.eye(count, self.most, dtype=np.float32))

    def picture(self, value: Any, example: str) -> Picture:
        picture = super().picture(value, example)
        return picture if self.boxes is None or not isinstance(value, str) else self._with_boxes(picture, self.boxes)

    def _with_boxes(self, picture: Picture, path: Path) -> Picture:
        """The picture with the boxes of the store."""
        self._store = self._store or FeatureStore(path)
        record = self._store.read(picture.key, self.most)
        if record.boxes is None:
            raise DataError(f"{path}: image '{picture.key}' has no boxes; use a store with boxes")
        return replace(picture, boxes=record.boxes.tolist(), region_names=record.region_names, classes=record.classes)

    def described(self, example: Example) -> ResolvedExample:
        """The example with regions in place of pictures, as the reader of features reads it."""
        records = tuple(self.regions_of(value, example.id) for value in example.shown(self.field))
        value = records[0] if len(records) == 1 else All(records)
        inputs = {**example.inputs, **({self.field: value} if records else {})}
        return ResolvedExample(example.id, inputs, example.targets, example.facts, example.labels)

    def hide(self, item: Any, draw: random.Random, hiding: Hiding) -> tuple[Any, Tensor]:
        regions, seen = item
        hidden, labels = self.inner.hide(regions, draw, hiding)
        return (hidden, seen), labels

    def slots(self, value: Any) -> float:
        return self.inner.slots(self.regions_of(value))

    def collate(self, items: Sequence[Any]) -> dict[str, Tensor]:
        """The tensors of the reader of features, whose features (B, N, W) are the weights of W regions; and those of
        `stacked` for every picture of the batch once; and source (B, P), which of the Q pictures each row shows."""
        collated = self.inner.collate([item for item, _ in items])
        pictures: dict[object, tuple[int, Seen]] = {}
        source = [[pictures.setdefault(seen.identity, (len(pictures), seen))[0] for seen in row] for _, row in items]
        pixels, sizes, rois = stacked([seen for _, seen in pictures.values()], self.size)
        rows = pad_sequence([torch.tensor(row) for row in source], True)
        return {**collated, "pixels": pixels, "sizes": sizes, "rois": rois, "source": rows}


def stacked(pictures: Sequence[Seen], size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pixels (Q, 3, size, size) uint8, sizes (Q, 2), the width and height in pixels that each picture covers, and the
    boxes (Q, R, 4) to pool, padded with 0."""
    pixels, sizes = stack_pictures([seen.pixels for seen in pictures], size)
    return pixels, sizes, pad_sequence([torch.from_numpy(seen.boxes) for seen in pictures], True)
