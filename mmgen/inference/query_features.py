"""Features of a query's pictures, by the extractor of the training features; remarks on pictures unlike those."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from ..configs import EmbedderConfig, FeaturesConfig
from ..errors import DataError, UnavailableError
from ..features.embedder import StoredEmbedder
from ..features.fingerprints import difference, is_imported
from ..features.statistics import FeatureRange
from ..model import Model
from ..parts import Extractor, FailedImage, Picture, Record
from ..tensors import All, ResolvedExample
from .query import Query
from .query_pictures import as_picture, as_record


class QueryFeatures:
    """Resolves the values of inputs whose features come from a store. An extractor is built for its first picture, and
    reused. Safe to call from several threads.

    inputs  the step's inputs, by name
    where   the prefix of error messages
    extractors  input -> the folder of its saved extractor
    """

    def __init__(
        self, model: Model, inputs: Mapping[str, EmbedderConfig], where: str, extractors: Mapping[str, Path]
    ) -> None:
        embedders = {name: model.embedders[name] for name in inputs if name in model.embedders}
        self.embedders = {
            name: embedder for name, embedder in embedders.items() if isinstance(embedder, StoredEmbedder)
        }
        self.inputs, self.where, self.extractors = inputs, where, extractors
        self._extractors: dict[str, Extractor] = {}
        self._ranges: dict[str, FeatureRange | None] = {}
        self._extracted: dict[tuple[str, int], tuple[Picture, Record]] = {}  # by input and identity of the value
        self._lock = threading.Lock()
        self._extracting = threading.Lock()  # held by an extractor that is not thread-safe

    def __contains__(self, name: str) -> bool:
        return name in self.embedders

    def of(self, name: str, value: object, query: Query, shown: list[Picture]) -> Record | str | All:
        """The value for an input's reader, from a picture, a key or features, or from several of them. Adds the
        pictures to `shown`. Raises DataError, and UnavailableError if the extractor for a picture is not available."""
        values = value.values if isinstance(value, All) else value
        if isinstance(values, list | tuple):
            return All(tuple(self._resolve_one(name, element, query, shown) for element in values))
        return self._resolve_one(name, value, query, shown)

    @contextlib.contextmanager
    def extracted(self, values: Sequence[tuple[str, object, Query]]) -> Iterator[None]:
        """Extract the features of the pictures among these values (input, value, query) together, if they are bytes;
        `of` uses them until the end of the block. Pictures for which this fails are left to `of`, which reports the
        reason."""
        ready: dict[tuple[str, int], tuple[Picture, Record]] = {}
        for name in self.embedders:
            pictures: dict[str, Picture] = {}
            for value, query in [(value, query) for input_name, value, query in values if input_name == name]:
                content = value.get("picture") if isinstance(value, Mapping) else value
                with contextlib.suppress(ValueError, TypeError, DataError):
                    if isinstance(content, bytes) and (picture := as_picture(value, query.id)):
                        pictures[str(id(value))] = replace(picture, key=str(id(value)))
            if len(pictures) < 2:
                continue
            with contextlib.suppress(Exception):  # `of` meets the error again, for the picture that it is about
                for record in self._extract_records(name, [*pictures.values()]):
                    if isinstance(record, Record):
                        ready[name, int(record.key)] = pictures[record.key], record
        self._extracted |= ready
        try:
            yield
        finally:
            for key in ready:
                self._extracted.pop(key, None)

    def _resolve_one(self, name: str, value: object, query: Query, shown: list[Picture]) -> Record | str:
        try:
            ready, record = self._extracted.get((name, id(value)), (None, None))
            picture = replace(ready, key=query.id) if ready else as_picture(value, query.id, query.folder)
            if picture is not None:
                shown.append(picture)
                self._check_boxes(name, picture, query)
                return self._extract(name, picture, record)
            record = as_record(value, query.id)
        except (ValueError, TypeError) as error:
            raise DataError(f"{name}: {error}") from None
        reader = self.embedders[name].reader
        if record is not None:
            if record.boxes is None and reader.boxes:
                raise DataError(f'{name}: the model needs boxes; add "boxes", with one box per row of features')
            return record
        if not isinstance(value, str) or query.folder is None:
            line = " ".join(str(value)[:40].split())
            raise DataError(f"{name}: expected a picture, a key or features, but got {line}")
        if reader.path is None or not reader.path.exists() or value not in reader.store:
            if "://" in value:
                raise DataError(f"{value}: is a web address; download the picture, and give the file")
            with contextlib.suppress(OSError):  # a name that is too long for a file
                if (special := query.folder / value).exists():
                    what = "a folder; give one picture" if special.is_dir() else "not a regular file"
                    raise DataError(f"{special}: is {what}")
            keys = f", and not a key of {reader.path}" if reader.path and reader.path.exists() else ""
            raise DataError(f"{query.folder / value}: no such file{keys}")
        return value

    def _check_boxes(self, name: str, picture: Picture, query: Query) -> None:
        """Raises DataError if a field of the query refers to boxes that the query does not give."""
        config = self.inputs[name]
        if picture.boxes is None and isinstance(config, FeaturesConfig):
            for field in config.optional_fields():
                if query.inputs.get(field) and config.refers_to_boxes(field):
                    raise DataError(
                        f"{field}: refers to boxes, but the picture has none; give boxes with the picture, "
                        f'{{"{name}": {{"picture": "photo.jpg", "boxes": [[x0, y0, x1, y1]]}}}}'
                    )

    def _extract(self, name: str, picture: Picture, ready: Record | None = None) -> Record:
        """The features of a picture; `ready`: if they are extracted already. Raises DataError for a picture that cannot
        be read."""
        record = replace(ready, key=picture.key) if ready else next(iter(self._extract_records(name, [picture])), None)
        if record is None or isinstance(record, FailedImage):
            raise DataError(record.reason if record else f"{picture.key}: the extractor returned no features")
        if picture.boxes is not None and (record.boxes is None or len(record.boxes) != len(picture.boxes)):
            raise DataError(f"{picture.key}: the extractor of '{name}' chooses the boxes; leave out \"boxes\"")
        return record

    def _extract_records(self, name: str, pictures: list[Picture]) -> list[Record | FailedImage]:
        extractor = self.extractor(name)
        with contextlib.nullcontext() if extractor.thread_safe else self._extracting:
            return list(extractor.records(pictures))

    @property
    def thread_safe(self) -> bool:
        """Whether the extractors that have been built extract features in several threads at a time."""
        return all(extractor.thread_safe for extractor in self._extractors.values())

    def extractor(self, name: str) -> Extractor:
        """The extractor that made the training features of an input. Raises UnavailableError."""
        with self._lock:
            if name not in self._extractors:
                self._extractors[name] = self._build_extractor(name)
            return self._extractors[name]

    def _build_extractor(self, name: str) -> Extractor:
        config, trained = self.inputs[name], self.embedders[name].fingerprint
        source, imported = trained.get("extractor", "unknown"), is_imported(trained)
        allow = f"--set inputs.{name}.allow_other_features=true"
        if not isinstance(config, FeaturesConfig) or config.extractor is None or config.extractor.source == "file":
            raise UnavailableError(
                f"{self.where}: '{name}' was trained on features of {source}, whose extractor is not known here; give "
                f"a key of the feature store, or name the extractor with --set, in Python sets of load_run: "
                f"inputs.{name}.extractor.type=NAME"
                + f" {allow}; or train with [inputs.{name}.extractor], which is compared with the file"
                * imported
            )
        saved, settings = self.extractors.get(name), config.extractor
        extractor = settings.load(saved) if saved else settings.build()
        fingerprint = dict(extractor.fingerprint)
        if fingerprint not in (trained, config.compared) and not config.allow_other_features:
            same_extractor = fingerprint.get("extractor") == source
            changes = (
                difference(trained, fingerprint, ("in training", "here")) if same_extractor else f"{source} in training"
            )
            raise UnavailableError(
                f"{self.where}: features of this extractor of '{name}' differ from the training features ({changes}); "
                + (
                    f"the file does not say which network made them; if it was this one, add {allow}"
                    if imported and config.compared is None
                    else "use the same extractor and settings"
                )
            )
        return extractor

    def remarks(self, example: ResolvedExample) -> Iterator[str]:
        """A remark for every picture of a query that differs from all pictures of the run's feature store. Without the
        store there are none."""
        for name, embedder in self.embedders.items():
            for value in example.seen_by(name).shown(embedder.reader.field):
                if isinstance(value, Record) and (known := self._known_range(name)) is not None:
                    distance = known.distance(features := value.features[: embedder.reader.limit])
                    if not known.has(features):
                        yield (
                            f"{name}: the picture is unlike the pictures that the model knows (its features are "
                            f"{distance:.1f} deviations from their mean, those of known pictures at most "
                            f"{known.farthest:.1f}); expect no sensible answer"
                        )

    def _known_range(self, name: str) -> FeatureRange | None:
        with self._lock:
            if name not in self._ranges:
                reader = self.embedders[name].reader
                known = reader.path is not None and reader.path.exists()
                self._ranges[name] = FeatureRange.of(reader.store, reader.limit) if known else None
            return self._ranges[name]

    def warm(self, name: str) -> Record:
        """Features of a blank picture, so that the extractor is built; zeros if the input takes no pictures."""
        try:
            return self._extract(name, Picture("warm", partial(Image.new, "RGB", (64, 64))))
        except (UnavailableError, DataError):
            width = self.embedders[name].width
            return Record("warm", np.zeros((1, width), np.float32), np.array([[0, 0, 1, 1]], np.float32))
