"""Stored features as an input: the reader of a store (regions, gaps, masking), and W, the layer before the encoder.

A plugin adds a config and the names of the slots: regions and grids are both such plugins.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ..configs import FeaturesConfig
from ..errors import DataError
from ..examples import Example, ResolvedExample
from ..parts import Backbone, Embedder, Reader, Record
from ..tensors import Hiding, Segment
from .classes import Regions, hide_regions
from .fingerprints import differences
from .statistics import measure, word_scale
from .store import FeatureStore
from .uninitialised import is_loading

PER_REGION = ("features", "boxes", "region_names", "scores", "classes")  # fields of a record with a row per region
BOX_SHARE = 0.2  # share of a box in the variance of the output of the untrained W


class StoreReader(Reader):
    """Reads an example's features from a store, or from a `Record` in the example.

    field    the example's input with the key of the image, or with a Record
    limit    maximum number of regions per image; the store has them by descending confidence
    classes  class names of the regions, if they are known
    most     maximum number of pictures per example, if each has its own token type
    """

    most: int | None = None

    def __init__(self, config: FeaturesConfig, limit: int | None = None) -> None:
        self.config, self.field, self.limit, self.boxes = config, config.fields[0], limit, config.boxes
        self.width, self.fingerprint, self.classes = config.width, config.fingerprint, config.classes
        self.path = Path(config.features) if config.features is not None else None
        self._store: FeatureStore | None = None

    @property
    def store(self) -> FeatureStore:
        """The store, opened on first use and compared with the training features. Raises DataError."""
        if self._store is None:
            if self.path is None:
                raise DataError(f'{self.field}: no features; set features = "FOLDER" or an extractor')
            store = FeatureStore(self.path)
            self._check_store(store)
            self._store = store
        return self._store

    def records(self, example: ResolvedExample) -> list[Record]:
        """The features of each picture of the example, with at most `limit` regions. Raises DataError if the example
        has no picture, or more than the encoder has token types, or if its features differ from the training
        features."""
        values = example.shown(self.field)
        if not values:
            inputs = ", ".join(example.inputs) or "none"
            raise DataError(f"example '{example.id}' has no {self.field}; its inputs are: {inputs}")
        if self.most is not None and len(values) > self.most:
            raise DataError(
                f"example '{example.id}' shows {len(values)} pictures, but the encoder has token types for "
                f"{self.most}; show fewer, or set extra_token_types of the backbone"
            )
        return [self._record(value, example) for value in values]

    def _record(self, value: Any, example: Example) -> Record:
        if isinstance(value, str):
            return self.store.read(value, self.limit)
        if not isinstance(value, Record):
            raise DataError(f"{self.field} of '{example.id}' is {value!r:.60}; expected a key of the feature store")
        if self.width not in (None, width := value.features.shape[1]):
            raise DataError(
                f"{self.field} of '{example.id}': features have width {width}, but the model expects {self.width}"
            )
        cut = {name: values[: self.limit] for name in PER_REGION if (values := getattr(value, name)) is not None}
        return replace(value, **cut)

    def read(self, example: ResolvedExample) -> tuple[Regions, ...]:
        """The regions of each picture. Raises DataError for a picture without regions."""
        return tuple(self._regions(record) for record in self.records(example))

    def _regions(self, record: Record) -> Regions:
        if not len(record.features):
            raise DataError(
                f"image '{record.key}' has no regions; leave the image out, or extract its features with other settings"
            )
        if record.boxes is None and self.boxes:
            raise DataError(f"image '{record.key}' has features without boxes; set boxes = false to read features only")
        features = np.asarray(record.features)
        features = features if features.dtype == np.float16 else features.astype(np.float32, copy=False)
        boxes = None if record.boxes is None else np.asarray(record.boxes, np.float32)
        return Regions(np.zeros_like(features) if self.config.zero_features else features, boxes, record.classes)

    def hide(self, item: Any, draw: random.Random, hiding: Hiding) -> tuple[Any, Tensor]:
        """Mask regions: features are set to 0, boxes are kept; the labels are (N, C) class distributions of the masked
        regions. For readers with `hides` = "regions"."""
        masked, labels = [], []
        for regions in item:
            hidden, predicted = hide_regions(regions.classes, len(regions.features), self.classes, draw, hiding)
            masked.append(regions._replace(features=np.where(hidden[:, None], 0, regions.features), hidden=hidden))
            labels.append(predicted)
        return tuple(masked), torch.cat(labels)

    def count(self, value: Any) -> int:
        """The number of regions of a picture, also beyond `limit`."""
        return len(value.features) if isinstance(value, Record) else self.store.count(str(value))

    def slots(self, value: Any) -> int:
        """The number of the picture's regions that are read, from the index of the store."""
        return min(self.count(value), self.limit or 1 << 30)

    def collate(self, items: Sequence[tuple[Regions, ...]]) -> dict[str, Tensor]:
        """features (B, N, D), in float16 if all are stored so (the model makes float32 of them on its device); mask
        (B, N); boxes (B, N, 4) if all regions have them; picture (B, N), the index of each region's picture, if an
        example shows several pictures."""
        dtype = np.result_type(*(regions.features for item in items for regions in item))

        def pad(rows: Iterable[np.ndarray]) -> Tensor:
            return pad_sequence([torch.from_numpy(row) for row in rows], True)

        rows = [np.concatenate([regions.features for regions in item], dtype=dtype) for item in items]
        lengths = torch.tensor([len(row) for row in rows])
        collated = {"features": pad(rows), "mask": torch.arange(int(lengths.max())) < lengths.unsqueeze(1)}
        if all(regions.boxes is not None for item in items for regions in item):
            collated["boxes"] = pad(np.concatenate([r.boxes for r in item if r.boxes is not None]) for item in items)
        if any(len(item) > 1 for item in items):
            collated["picture"] = pad(
                np.repeat(np.arange(len(item)), [len(regions.features) for regions in item]) for item in items
            )
        return collated

    def _check_store(self, store: FeatureStore) -> None:
        ours = {"width": self.width, "fingerprint": None if self.config.allow_other_features else self.fingerprint}
        theirs = {name: store.about[name] if ours[name] else None for name in ours}
        changes = differences(ours, theirs)
        if self.classes and store.class_names not in ((), self.classes):
            changes = [*changes, "class names"]
        if changes:
            raise DataError(
                f"{store.path}: features differ from those of the training ({'; '.join(changes)}); use those, or set "
                "allow_other_features = true to use features of another extractor"
            )


class StoredEmbedder(Embedder):
    """features (B, N, D) and boxes (B, N, 4) -> states (B, N, E) by one linear layer. If examples show several
    pictures, `picture` (B, N) is the index of each region's picture, and the token type of the region.

    width, fingerprint  of the training features
    places              number of values that describe the position of a region (`where`)
    """

    places: ClassVar[int] = 4
    typed: ClassVar[bool] = True  # whether the token type of a region is the index of its picture; if not, regions
    # beyond the limit count too in the statistics that initialise W
    reader: StoreReader
    mean: Tensor  # (D,)
    deviation: Tensor  # (D,)

    def __init__(self, config: FeaturesConfig, backbone: Backbone, reader: StoreReader | None = None) -> None:
        super().__init__()
        self.reader = reader or StoreReader(config)
        self.reader.most = backbone.types or None if self.typed else None
        statistics = None
        if config.width is None:  # not restored from a run, so the file decides
            store = self.reader.store
            self.reader.width, self.reader.fingerprint = store.width, store.fingerprint
            self.reader.classes = store.class_names or None
            if not is_loading():
                statistics = measure(store, self.reader.limit if self.typed else None)
        self.standard = config.normalize == "standard"
        assert self.reader.width is not None  # from the config or the file
        self.width = width = self.reader.width
        places = self.places * self.reader.boxes
        if self.standard:
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("deviation", torch.ones(width))
        self.projection = nn.Linear(width + places, backbone.input_size)
        if statistics is not None:
            self.init_from_statistics(*statistics, word_scale(backbone))

    @property
    def fingerprint(self) -> dict[str, Any]:
        return self.reader.fingerprint or {}

    def forward(
        self, features: Tensor, mask: Tensor, boxes: Tensor | None = None, picture: Tensor | None = None
    ) -> Segment:
        parts = [self._normalised(features)] + ([self.where(boxes)] if self.reader.boxes and boxes is not None else [])
        return Segment(self.projection(torch.cat(parts, -1)), mask, picture)

    def where(self, boxes: Tensor) -> Tensor:
        """The position values of boxes (B, N, 4) that W reads besides the features."""
        return boxes

    def inferred_settings(self) -> dict[str, Any]:
        classes = {"classes": self.reader.classes} if self.reader.classes else {}
        return {"width": self.width, "fingerprint": self.reader.fingerprint, **classes}

    def vocabularies(self) -> dict[str, tuple[str, ...]]:
        """The class names of masked regions; empty if the store has no classes."""
        return {} if self.reader.hides is None else {"classes": self.reader.classes or ()}

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        """names, boxes and scores of the example's slots; for several pictures also "pictures", the picture of each
        slot."""
        records = self.reader.records(example)
        names = [name for record in records for name in record.region_names or self.slot_names(len(record.features))]
        described: dict[str, Any] = {"names": names}
        for name in ("boxes", "scores"):  # for all pictures, or for none
            known = [getattr(record, name) for record in records]
            described[name] = [] if any(values is None for values in known) else np.concatenate(known).tolist()
        if len(records) > 1:
            described["pictures"] = [place for place, record in enumerate(records) for _ in record.features]
        return described

    def slot_names(self, count: int) -> list[str]:
        """Names of slots whose regions have none."""
        return [f"region {place + 1}" for place in range(count)]

    def _normalised(self, visual: Tensor) -> Tensor:
        visual = visual.to(self.projection.weight.dtype)
        return (visual - self.mean) / self.deviation if self.standard else visual

    @torch.no_grad()
    def init_from_statistics(self, mean: Tensor, deviation: Tensor, scale: float) -> None:
        """Initialise the normalisation and W from the statistics of the features, both (D,). `scale`: the standard
        deviation of word embeddings. The outputs of W then have mean 0 and the length of word embeddings, so that
        neither dominates. Features of ReLU networks are far from 0; without the bias, all regions would start as nearly
        the same vector."""
        if self.standard:
            self.mean.copy_(mean)
            self.deviation.copy_(deviation)
            mean, deviation = torch.zeros_like(mean), torch.ones_like(deviation)
        weight, bias = self.projection.weight, self.projection.bias
        features, places = weight.split([self.width, weight.shape[1] - self.width], 1)
        share = 1 - BOX_SHARE * bool(places.numel())
        features.normal_(std=scale * (share / deviation.square().sum().clamp(min=1e-12)).sqrt().item())
        bias.copy_(-(features @ mean))
        if places.numel():
            places.normal_(std=scale * (BOX_SHARE / (places.shape[1] / 12)) ** 0.5)  # for values spread over 0..1
            bias.sub_(places.sum(1) / 2)
