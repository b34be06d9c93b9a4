"""Features of what a query gives to inputs that read them from a store: pictures go through the extractor that made the
training features."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial

import numpy as np
from PIL import Image

from ..configs import EmbedderConfig, FeaturesConfig
from ..errors import DataError, UnavailableError
from ..features.embedder import StoredEmbedder
from ..features.fingerprints import difference
from ..model import Model
from ..parts import Extractor, FailedImage, Picture, Record
from ..tensors import All
from .pictures import as_picture, as_record
from .query import Query


class QueryFeatures:
    """The inputs of a step whose features come from a store. An extractor is built when its first picture comes, and
    kept; any number of threads may call.

    inputs  the step's, by name
    where   what errors begin with
    """

    def __init__(self, model: Model, inputs: Mapping[str, EmbedderConfig], where: str) -> None:
        embedders = {name: model.embedders[name] for name in inputs if name in model.embedders}
        self.embedders = {name: each for name, each in embedders.items() if isinstance(each, StoredEmbedder)}
        self.inputs, self.where = inputs, where
        self._extractors: dict[str, Extractor] = {}
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        return name in self.embedders

    def of(self, name: str, value: object, query: Query) -> Record | str | All:
        """What the reader of an input takes of a picture, a key or features; of several, all of them. Raises DataError,
        and UnavailableError where a picture cannot become features."""
        several = value.values if isinstance(value, All) else value
        if isinstance(several, list | tuple):
            return All(tuple(self._of_one(name, element, query) for element in several))
        return self._of_one(name, value, query)

    def _of_one(self, name: str, value: object, query: Query) -> Record | str:
        try:
            picture = as_picture(value, query.id, query.folder)
            if picture is not None:
                return self._extracted(name, picture)
            record = as_record(value, query.id)
        except (ValueError, TypeError) as error:
            raise DataError(f"{name}: {error}") from None
        reader = self.embedders[name].reader
        if record is not None:
            if record.boxes is None and reader.boxes:
                raise DataError(f'{name}: the model reads boxes; give "boxes", one for each row of features')
            return record
        if not isinstance(value, str):
            raise DataError(f"{name}: give a picture, a key or features, not {str(value)[:40]}")
        if reader.path is None or not reader.path.exists() or value not in reader.store:
            keys = f", and no key of {reader.path}" if reader.path and reader.path.exists() else ""
            raise DataError(f"{query.folder / value}: no such file{keys}")
        return value

    def _extracted(self, name: str, picture: Picture) -> Record:
        """A picture's features. Raises DataError for a picture that cannot be read."""
        extractor = self.extractor(name)
        with self._lock:  # plugins' extractors need not be fit for several threads
            record = next(iter(extractor.records([picture])), None)
        if record is None or isinstance(record, FailedImage):
            raise DataError(record.reason if record else f"{picture.key}: its extractor gave no features")
        if picture.boxes is not None and (record.boxes is None or len(record.boxes) != len(picture.boxes)):
            raise DataError(f"{picture.key}: the extractor of '{name}' chooses boxes by itself; leave them out")
        return record

    def extractor(self, name: str) -> Extractor:
        """What makes an input's features from a picture, as they were made for training. Raises UnavailableError."""
        with self._lock:
            if name not in self._extractors:
                self._extractors[name] = self._build(name)
            return self._extractors[name]

    def _build(self, name: str) -> Extractor:
        config, trained = self.inputs[name], self.embedders[name].fingerprint
        source = trained.get("extractor", "unknown")
        if not isinstance(config, FeaturesConfig) or config.extractor is None or config.extractor.source == "file":
            raise UnavailableError(
                f"{self.where}: '{name}' was trained on features of {source}, which cannot be made from a picture "
                "here; give a key of its features, or the extractor that made them: --set "
                f"inputs.{name}.extractor.type=NAME"
            )
        extractor = config.extractor.build()
        here = dict(extractor.fingerprint)
        if here != trained and not config.allow_other_features:
            same = here.get("extractor") == source
            changes = difference(trained, here, ("in training", "here")) if same else f"{source} in training"
            raise UnavailableError(
                f"{self.where}: the extractor of '{name}' makes features that differ from the training features "
                f"({changes}); use the same extractor and settings"
            )
        return extractor

    def warm(self, name: str) -> Record:
        """Features of a blank picture, after the extractor is built; or zeros, where keys or features alone are
        asked."""
        try:
            return self._extracted(name, Picture("warm", partial(Image.new, "RGB", (64, 64))))
        except (UnavailableError, DataError):
            width = self.embedders[name].width
            return Record("warm", np.zeros((1, width), np.float32), np.array([[0, 0, 1, 1]], np.float32))
