"""Features of queries' pictures, by the extractor of the training features, which gets those of a batch together."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..configs import EmbedderConfig, FeaturesConfig
from ..errors import DataError, UnavailableError
from ..features.embedder import StoredEmbedder
from ..features.fingerprints import difference, in_words
from ..features.writer import checked
from ..model import Model
from ..parts import Extractor, FailedImage, Picture, Record
from .query import Query
from .query_pictures import as_file, as_picture


class QueryFeatures:
    """Resolves the values of inputs whose features come from a store. An extractor is built for its first picture, and
    reused. Safe to call from several threads.

    inputs  the step's inputs, by name
    where   the prefix of error messages
    saved   the folder with the inputs' extractors, of an export
    """

    def __init__(self, model: Model, inputs: Mapping[str, EmbedderConfig], where: str, saved: Path | None) -> None:
        self.embedders = {
            name: embedder
            for name, embedder in model.embedders.items()
            if name in inputs and isinstance(embedder, StoredEmbedder)
        }
        self.inputs, self.where, self.saved = inputs, where, saved
        self._extractors: dict[str, Extractor] = {}
        self._lock = threading.Lock()
        self._extracting = threading.Lock()  # held by an extractor that is not thread-safe

    def part(self, name: str, query: Query, value: Any) -> Any:
        """A value as a picture, a file, features, a key of the store, what only the reader knows, or
        an error."""
        reader = self.embedders[name].reader if name in self.embedders else None
        takes = self.inputs[name].takes
        try:
            if reader and isinstance(value, Record):
                return checked(value, "float32")
            read = (as_file if takes == "file" else as_picture)(value, query.id, query.folder)
        except (DataError, OSError, ValueError, TypeError) as error:
            return DataError(f"{name}: {error}")
        if read is not None or (reader is None and query.folder is not None):
            return value if read is None else read
        if reader is None or query.folder is None or not isinstance(value, str):  # a stranger's string is no path
            return DataError(f"{name}: expected a {takes}, but got {value!r:.40}")
        stored = reader.path is not None and reader.path.exists()
        if stored and value in reader.store:
            return value
        return DataError(f"{query.folder / value}: no such file" + f", and not a key of {reader.path}" * stored)

    def records(self, name: str, pictures: Sequence[Picture]) -> list[Record | DataError]:
        """The features of pictures, from one call of the extractor; if that fails, from a call for each. A picture that
        cannot be read is a DataError. Raises UnavailableError if the extractor is not available."""
        if not pictures:
            return []
        extractor, keyed = self.extractor(name), dict[str, Picture]()
        for number, picture in enumerate(pictures):
            key = f"{picture.key} ({number})" if picture.key in keyed else picture.key
            keyed[key] = replace(picture, key=key)
        try:
            with contextlib.nullcontext() if extractor.thread_safe else self._extracting:
                results = {result.key: result for result in extractor.records([*keyed.values()])}
        except DataError as error:
            if len(pictures) == 1:
                return [error]
            return [result for picture in pictures for result in self.records(name, [picture])]
        return [
            DataError(result.reason)
            if isinstance(result := results[key], FailedImage)
            else replace(result, key=picture.key)
            for key, picture in zip(keyed, pictures, strict=True)
        ]

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
        if not isinstance(config, FeaturesConfig) or config.extractor is None or config.extractor.source == "file":
            raise UnavailableError(
                f"{self.where}: '{name}' was trained on features of {in_words(trained)}, whose extractor is not known "
                f"here; give a key of the feature store, or name the extractor with --set, in Python with sets of "
                f"mmgen.load: inputs.{name}.extractor.type=NAME"
            )
        saved = self.saved and self.saved / name
        extractor = config.extractor.load(saved) if saved and saved.is_dir() else config.extractor.build()
        fingerprint = dict(extractor.fingerprint)
        if fingerprint != trained and not config.allow_other_features:
            changes = difference(trained, fingerprint, ("in training", "here"))
            raise UnavailableError(
                f"{self.where}: features of this extractor of '{name}' differ from the training features ({changes}); "
                "use the same extractor and settings, or, if the features are the same, add "
                f"--set inputs.{name}.allow_other_features=true"
            )
        return extractor
