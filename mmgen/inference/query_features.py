"""Features of queries' pictures, by the extractor of the training features, which gets those of a batch together."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..configs import EmbedderConfig, FeaturesConfig
from ..errors import DataError, UnavailableError
from ..examples import All
from ..features.embedder import StoredEmbedder
from ..features.fingerprints import difference
from ..features.writer import checked
from ..model import Model
from ..parts import Extractor, FailedImage, Picture, Record
from .query import Query, values_in
from .query_pictures import as_file, as_picture


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
        self.embedders = {
            name: embedder
            for name, embedder in model.embedders.items()
            if name in inputs and isinstance(embedder, StoredEmbedder)
        }
        self.inputs, self.where, self.extractors = inputs, where, extractors
        self._extractors: dict[str, Extractor] = {}
        self._lock = threading.Lock()
        self._extracting = threading.Lock()  # held by an extractor that is not thread-safe

    def __contains__(self, name: str) -> bool:
        return name in self.embedders

    def resolve(self, name: str, values: Sequence[tuple[Query, Any]]) -> list[tuple[Any, list[Picture]]]:
        """For each query and its value for an input: the value for the input's reader, and its pictures. A value of an
        input for pictures or files may be several, `All` or a list. Features stand for a picture if the reader reads
        them. A value that cannot be read is a DataError. Raises UnavailableError if the extractor for a picture is not
        available."""
        if name not in self.embedders and self.inputs[name].takes not in ("picture", "file"):
            return [(value, []) for _, value in values]
        parts = [[self._part(name, part, query) for part in values_in(value)] for query, value in values]
        shown = [part for row in parts for part in row if isinstance(part, Picture)]
        read: Iterator[Any] = iter(self._extract(name, shown) if name in self.embedders else shown)
        results: list[tuple[Any, list[Picture]]] = []
        for (_, value), row in zip(values, parts, strict=True):
            pictures = [part for part in row if isinstance(part, Picture)]
            resolved = [next(read) if isinstance(part, Picture) else part for part in row]
            error = next((part for part in resolved if isinstance(part, DataError)), None)
            together = isinstance(value, All | list | tuple)
            results.append((error or (All(tuple(resolved)) if together else resolved[0]), pictures))
        return results

    def _part(self, name: str, value: Any, query: Query) -> Any:
        """A value as a picture, a file, features, a key of the store, what only the reader knows, or an error."""
        reader = self.embedders[name].reader if name in self.embedders else None
        takes = "picture" if reader else self.inputs[name].takes
        try:
            read = (as_file if takes == "file" else as_picture)(value, query.id, query.folder)
            if reader and isinstance(value, Record):
                return checked(value, "float32")
        except (DataError, ValueError, TypeError) as error:
            return DataError(f"{name}: {error}")
        if read is not None or (reader is None and query.folder is not None):
            return value if read is None else read
        if not isinstance(value, str) or query.folder is None or reader is None:  # a stranger's string is no path
            expected = f"a {takes}" if reader is None else "a picture, a key or features"
            return DataError(f"{name}: expected {expected}, but got {value!r:.40}")
        stored = reader.path is not None and reader.path.exists()
        if stored and value in reader.store:
            return value
        if "://" in value:
            return DataError(f"{value}: is a web address; download the picture, and give the file")
        with contextlib.suppress(OSError):  # a name that is too long for a file
            if (special := query.folder / value).exists():
                what = "a folder; give one picture" if special.is_dir() else "not a regular file"
                return DataError(f"{special}: is {what}")
        return DataError(f"{query.folder / value}: no such file" + f", and not a key of {reader.path}" * stored)

    def _extract(self, name: str, pictures: Sequence[Picture]) -> list[Record | DataError]:
        """The features of pictures, from one call of the extractor; if that fails, from a call for each. A picture that
        cannot be read is a DataError."""
        if not pictures:
            return []
        extractor = self.extractor(name)
        keyed: dict[str, Picture] = {}
        for number, picture in enumerate(pictures):
            key = f"{picture.key} ({number})" if picture.key in keyed else picture.key
            keyed[key] = replace(picture, key=key)
        try:
            with contextlib.nullcontext() if extractor.thread_safe else self._extracting:
                results = {result.key: result for result in extractor.records([*keyed.values()])}
        except Exception as error:
            if len(pictures) > 1:
                return [result for picture in pictures for result in self._extract(name, [picture])]
            if isinstance(error, DataError):
                return [error]
            raise
        return [_checked(name, picture, results[key]) for key, picture in zip(keyed, pictures, strict=True)]

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
        source = trained.get("extractor", "unknown")
        if not isinstance(config, FeaturesConfig) or config.extractor is None or config.extractor.source == "file":
            raise UnavailableError(
                f"{self.where}: '{name}' was trained on features of {source}, whose extractor is not known here; give "
                f"a key of the feature store, or name the extractor with --set, in Python with sets of mmgen.load: "
                f"inputs.{name}.extractor.type=NAME"
            )
        saved = self.extractors.get(name)
        extractor = config.extractor.load(saved) if saved else config.extractor.build()
        fingerprint = dict(extractor.fingerprint)
        if fingerprint not in (trained, config.compared) and not config.allow_other_features:
            same = fingerprint.get("extractor") == source
            changes = difference(trained, fingerprint, ("in training", "here")) if same else f"{source} in training"
            raise UnavailableError(
                f"{self.where}: features of this extractor of '{name}' differ from the training features ({changes}); "
                "use the same extractor and settings, or, if the features are the same, add "
                f"--set inputs.{name}.allow_other_features=true"
            )
        return extractor


def _checked(name: str, picture: Picture, result: Record | FailedImage) -> Record | DataError:
    """The record of a picture under the picture's own key, or what is wrong."""
    if isinstance(result, FailedImage):
        return DataError(result.reason)
    if picture.boxes is not None and (result.boxes is None or len(result.boxes) != len(picture.boxes)):
        return DataError(f"{picture.key}: the extractor of '{name}' chooses the boxes; leave out \"boxes\"")
    return replace(result, key=picture.key)
