"""Stored features as an input: the reader that takes them from a store, and W, the one linear layer in front of the
encoder.

What a plugin adds to it is a config, and what its slots are called: regions and grids are both this.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ..configs import FeaturesConfig
from ..errors import DataError, MissingInput
from ..parts import Backbone, Embedder, Reader, Record
from ..tensors import Example, Hiding, ResolvedExample, Segment
from .fingerprints import difference, in_words
from .hiding import hide_regions
from .measures import measure, word_scale
from .multi_file import MultiFileStore, open_store
from .regions import Regions, check_picture_count
from .store import FeatureStore

FARTHEST = 2.0  # image sizes that a box may reach: those of a store lie within the image, those of other sources nearly
REGIONS = ("features", "boxes", "labels", "scores")  # what a record has of each region, its classes apart
BOX_SHARE = 0.2  # of the variance of what an untaught W gives, from the numbers of a box


class StoreReader(Reader):
    """An example's features out of a store, or out of a `Record` that the example itself carries.

    field    the example's input with the image's key, or with a Record
    limit    regions an image at most: the store has them by falling confidence
    classes  names of the classes that regions may be of, where they are known
    most     pictures an example at most, where each has a token type of its own
    """

    most: int | None = None

    def __init__(self, config: FeaturesConfig, limit: int | None = None) -> None:
        self.field, self.limit, self.boxes, self.blind = config.reads[0], limit, config.boxes, config.zero_features
        self.allow_other = config.allow_other_features
        self.width, self.fingerprint, self.classes = config.width, config.fingerprint, config.classes
        self.path = Path(config.features) if config.features is not None else None
        self._store: FeatureStore | MultiFileStore | None = None

    @property
    def store(self) -> FeatureStore | MultiFileStore:
        """Opened when first asked for, and checked against what W was learnt from. Raises DataError."""
        if self._store is None:
            if self.path is None:
                raise DataError(f'{self.field}: no features; name a file of them (features = "...") or an extractor')
            store = open_store(self.path)
            self._fits(store)
            self._store = store
        return self._store

    def records(self, example: ResolvedExample) -> list[Record]:
        """The features of every picture of the example, of `limit` regions at most. Raises DataError when it has none,
        or they are not of the kind that W learnt from."""
        values = example.shown(self.field)
        if not values:
            raise MissingInput(
                f"example '{example.id}' has no {self.field}; its inputs are: {', '.join(example.inputs) or 'none'}",
                self.field,
            )
        check_picture_count(example, self.field, self.most)
        return [self._record(value, example) for value in values]

    def _record(self, value: Any, example: Example) -> Record:
        if isinstance(value, Record):
            if self.width is not None and value.features.shape[1] != self.width:
                raise DataError(
                    f"{self.field} of '{example.id}': features are {value.features.shape[1]} wide, the model's are "
                    f"{self.width}"
                )
            return _first(value, self.limit)
        if not isinstance(value, str):
            raise DataError(f"{self.field} of '{example.id}' is {value!r:.60}; it must be a key of the features' store")
        return self.store.read(value, self.limit)

    def find_gaps(self, examples: Sequence[Example]) -> None:
        """Raises DataError when images of examples are not in the store, or have no regions there, and for an example
        of more pictures than can be told apart."""
        for example in examples:
            check_picture_count(example, self.field, self.most)
        values = (value for each in examples for value in each.shown(self.field))
        one_of = (value if isinstance(value, tuple) else (value,) for value in values)  # alternatives are drawn later
        keys = dict.fromkeys(key for each in one_of for key in each if isinstance(key, str))
        for absent, what in (
            ([key for key in keys if key not in self.store], "no features"),
            ([key for key in keys if key in self.store and not self.store.count(key)], "no regions"),
        ):
            if absent:
                shown = ", ".join(f"'{key}'" for key in absent[:3]) + (" and others" if len(absent) > 3 else "")
                raise DataError(
                    f"{self.store.path}: {what} of {len(absent)} of {len(keys)} images ({shown}); extract or import "
                    "them, or leave the images out"
                )

    def read(self, example: ResolvedExample) -> tuple[Regions, ...]:
        """Of every picture its regions. Raises DataError for one that has none."""
        return tuple(self._regions(record) for record in self.records(example))

    def _regions(self, record: Record) -> Regions:
        if not len(record.features):
            raise DataError(
                f"image '{record.key}' has no regions; leave it out, or extract its features with other settings"
            )
        features = np.asarray(record.features, np.float32)
        if not np.isfinite(features).all():
            raise DataError(
                f"{self.path or self.field}: image '{record.key}': features are not finite (NaN or infinite); make "
                "them again"
            )
        features = np.zeros_like(features) if self.blind else features
        boxes = None if record.boxes is None else np.asarray(record.boxes, np.float32)
        if not self.boxes:
            return Regions(features, boxes, record.classes)
        if boxes is None:
            raise DataError(f"image '{record.key}' has features without boxes; set boxes = false to read it without")
        if not (np.abs(boxes) <= FARTHEST).all():
            raise DataError(
                f"{self.path or self.field}: image '{record.key}': a box reaches to {np.abs(boxes).max():g}; boxes are "
                "relative to the image's size"
            )
        return Regions(features, boxes, record.classes)

    def hide(self, item: Any, draw: random.Random, hiding: Hiding) -> tuple[Any, Tensor]:
        """Regions whose features are 0 and whose boxes stay, and (N, C) distributions over the classes of what stood
        there. A reader that has `hides` = "regions" does this."""
        holed, labels = [], []
        for regions in item:
            hidden, predicted = hide_regions(regions.classes, len(regions.features), self.classes, draw, hiding)
            holed.append(
                regions._replace(features=np.where(hidden[:, None], np.float32(0), regions.features), hidden=hidden)
            )
            labels.append(predicted)
        return tuple(holed), torch.cat(labels)

    def slots(self, example: ResolvedExample) -> int:
        """Its regions, as the store's index counts them."""
        return sum(map(self._count, example.shown(self.field)))

    def _count(self, value: Any) -> int:
        known = isinstance(value, str)
        regions = len(value.features) if isinstance(value, Record) else self.store.count(value) if known else 0
        return regions if self.limit is None else min(regions, self.limit)

    def collate(self, items: Sequence[tuple[Regions, ...]]) -> dict[str, Tensor]:
        """features (B, N, D), mask (B, N); boxes (B, N, 4) where all have them; and where an example shows several
        pictures, picture (B, N): which of them a region is of."""
        rows = [torch.from_numpy(np.concatenate([regions.features for regions in item])) for item in items]
        lengths = torch.tensor([len(row) for row in rows])
        made = {
            "features": pad_sequence(rows, True),
            "mask": torch.arange(int(lengths.max())) < lengths.unsqueeze(1),
        }
        if all(regions.boxes is not None for item in items for regions in item):
            boxes = [np.concatenate([each.boxes for each in item if each.boxes is not None]) for item in items]
            made["boxes"] = pad_sequence([torch.from_numpy(each) for each in boxes], True)
        if any(len(item) > 1 for item in items):
            of = [torch.cat([torch.full((len(r.features),), n) for n, r in enumerate(item)]) for item in items]
            made["picture"] = pad_sequence(of, True)
        return made

    def _fits(self, store: FeatureStore | MultiFileStore) -> None:
        if self.width is not None and store.width != self.width:
            raise DataError(
                f"{store.path}: features are {store.width} wide, the model has learnt from features {self.width} wide"
            )
        if self.fingerprint is not None and store.fingerprint != self.fingerprint and not self.allow_other:
            others = difference(store.fingerprint, self.fingerprint, ("here", "while learning"))
            raise DataError(
                f"{store.path}: features of {in_words(store.fingerprint)}, the model has learnt from features of "
                f"{in_words(self.fingerprint)} ({others}); allow_other_features = true reads them all the same"
            )
        if self.classes and store.class_names and store.class_names != self.classes:
            raise DataError(
                f"{store.path}: its regions are of {len(store.class_names)} classes, which are not the "
                f"{len(self.classes)} that the model has learnt; make the features again with those"
            )


def _first(record: Record, limit: int | None) -> Record:
    """A record with its first `limit` regions only."""
    if limit is None or len(record.features) <= limit:
        return record
    cut = {name: values[:limit] for name in REGIONS if (values := getattr(record, name)) is not None}
    return replace(record, **cut, classes=record.classes and record.classes.of(slice(limit)))


class StoredEmbedder(Embedder):
    """features (B, N, D) and boxes (B, N, 4) -> states (B, N, E) by one linear layer. Where examples show several
    pictures, `picture` (B, N) tells which of them a region is of, and is its token type.

    width, fingerprint  of the features it was built for
    places              how many numbers say where a region is (`where`)
    """

    places: ClassVar[int] = 4
    typed: ClassVar[bool] = True  # whether the token type of a region is its picture's place
    measures_all: ClassVar[bool] = False  # whether W begins with the spread of regions beyond the reader's limit too
    reader: StoreReader
    mean: Tensor  # (D,)
    deviation: Tensor  # (D,)

    def __init__(self, config: FeaturesConfig, backbone: Backbone, reader: StoreReader | None = None) -> None:
        super().__init__()
        self.reader = reader or StoreReader(config)
        self.reader.most = backbone.types or None if self.typed else None
        statistics = None
        if config.width is None:  # not built from what a run keeps, so the file decides
            store = self.reader.store
            self.reader.width, self.reader.fingerprint = store.width, store.fingerprint
            self.reader.classes = store.class_names or None
            statistics = measure(store, None if self.measures_all else self.reader.limit)
        self.normalise = config.normalize
        width, places = self.width, self.places * self.reader.boxes
        if self.normalise == "standard":
            mean, deviation = (torch.zeros(width), torch.ones(width)) if statistics is None else statistics
            self.register_buffer("mean", mean)
            self.register_buffer("deviation", deviation)
        self.projection = nn.Linear(width + places, backbone.input_size)
        if statistics is not None:
            self._begin(*statistics, word_scale(backbone))

    @property
    def width(self) -> int:
        assert self.reader.width is not None  # of the config, or of the file
        return self.reader.width

    @property
    def fingerprint(self) -> dict[str, Any]:
        return self.reader.fingerprint or {}

    def forward(
        self, features: Tensor, mask: Tensor, boxes: Tensor | None = None, picture: Tensor | None = None
    ) -> Segment:
        parts = [self._normalised(features)] + ([self.where(boxes)] if self.reader.boxes and boxes is not None else [])
        return Segment(self.projection(torch.cat(parts, -1)), mask, picture)

    def where(self, boxes: Tensor) -> Tensor:
        """boxes (B, N, 4) as the numbers that W reads beside the features."""
        return boxes

    def found_settings(self) -> dict[str, Any]:
        classes = {"classes": list(self.reader.classes)} if self.reader.classes else {}
        return {"width": self.width, "fingerprint": self.reader.fingerprint, **classes}

    def labels(self) -> dict[str, tuple[str, ...]]:
        """The classes that hidden regions may be of; none where the store does not tell them."""
        return {} if self.reader.hides is None else {"classes": self.reader.classes or ()}

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        """labels, boxes and scores of the example's slots; of several pictures also "pictures", which each is of."""
        described: dict[str, Any] = {"labels": [], "boxes": [], "scores": [], "pictures": []}
        records = self.reader.records(example)
        for place, record in enumerate(records):
            count = len(record.features)
            described["labels"] += record.labels or self.names(count)
            described["pictures"] += [place] * count
        for name in ("boxes", "scores"):  # of all pictures, or of none
            known = [getattr(record, name) for record in records]
            if all(each is not None for each in known):
                described[name] = [value for each in known for value in each.tolist()]
        return described if len(records) > 1 else {name: each for name, each in described.items() if name != "pictures"}

    def names(self, count: int) -> list[str]:
        """What slots without labels are called."""
        return [f"region {place + 1}" for place in range(count)]

    def _normalised(self, visual: Tensor) -> Tensor:
        if self.normalise == "length":
            return nn.functional.normalize(visual, dim=-1)
        if self.normalise == "standard":
            return (visual - self.mean) / self.deviation
        return visual

    @torch.no_grad()
    def _begin(self, mean: Tensor, deviation: Tensor, scale: float) -> None:
        """W begins by giving vectors that lie about 0 and are as long as words, so that neither drowns the other.
        Features of ReLU networks lie far from 0; without the bias every region would begin as nearly the same
        vector."""
        mean, spread = self._after_normalising(mean, deviation)
        weight, width = self.projection.weight, self.width
        places = weight.shape[1] - width
        share = 1 - BOX_SHARE * bool(places)
        weight[:, :width].normal_(std=scale * (share / spread.square().sum().clamp(min=1e-12)).sqrt().item())
        self.projection.bias.copy_(-(weight[:, :width] @ mean))
        if places:
            weight[:, width:].normal_(std=scale * (BOX_SHARE / (places / 12)) ** 0.5)  # of numbers spread over 0..1
            self.projection.bias.sub_(weight[:, width:].sum(1) / 2)

    def _after_normalising(self, mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
        if self.normalise == "standard":
            return torch.zeros_like(mean), torch.ones_like(deviation)
        if self.normalise == "length":
            length = (mean.square() + deviation.square()).sum().sqrt().clamp(min=1e-6)
            return mean / length, deviation / length
        return mean, deviation
