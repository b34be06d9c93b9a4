"""Answer queries with one step of a run: pictures become features as they were made for learning."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..configs import FeaturesConfig
from ..decoding import Decoding
from ..errors import DataError, MmgenError, UnavailableError
from ..evaluation.generate import generate
from ..features.embedder import StoredEmbedder, StoreReader
from ..features.store import difference
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, OomRetry
from ..parts import Extractor, FailedImage, Picture, Record
from ..recipe.tables import Recipe
from ..registry import did_you_mean
from ..tensors import Example, Generation
from .query import Query, as_picture

Outcome = tuple[Query, "list[Generation] | FailedImage"]


class Asker:
    """One step of a run, ready to answer. Extractors are built when a picture first wants them, once; any number of
    threads may call.

    where  the run's folder, for errors
    """

    def __init__(self, recipe: Recipe, step: str, model: Model, where: Path) -> None:
        self.recipe, self.step, self.model, self.where = recipe, step, model, where
        self.inputs = recipe.steps[step].inputs
        self._extractors: dict[str, Extractor] = {}
        self._lock = threading.Lock()

    def answers(self, queries: Iterable[Query], options: Decoding, at_once: int = 1) -> Iterator[Outcome]:
        """Texts for every query, best first; what cannot be read (a broken picture, an unknown key) gives its reason
        instead. `at_once`: queries that are answered together, which is quicker, and later for the first.

        Raises DataError for a query that names no input, or not all that the step reads."""
        coming, retry = iter(queries), OomRetry("writing", ADVICE_FEWER_TEXTS)
        while some := list(itertools.islice(coming, at_once)):
            read = [self.example(query) for query in some]
            examples = [one for one in read if isinstance(one, Example)]
            written = iter(generate(self.model, examples, options, self.inputs, retry=retry))
            for query, one in zip(some, read, strict=True):
                yield query, one if isinstance(one, FailedImage) else next(written)

    def example(self, query: Query) -> Example | FailedImage:
        """What the readers read: values under the fields of the inputs' configs."""
        given = fields(self.recipe, query)
        if missing := lacking(self.recipe, self.inputs, given):
            raise DataError(
                f"{query.where}: the step '{self.step}' reads {' and '.join(self.inputs)}, and there is no {missing[0]}"
            )
        values: dict[str, Any] = {}
        try:
            for name in self.inputs:
                for field in self.recipe.inputs[name].reads:
                    stored = self._stored(name)
                    value = given[field]
                    if stored is not None:
                        value = self._value(name, stored.reader, value, query)
                    if field in values and values[field] is not value:
                        raise UnavailableError(
                            f"{self.where}: '{name}' and another input both read '{field}', with features of their "
                            "own; ask by a key of their stores"
                        )
                    values[field] = value
            found = Example(query.name, values)
            self._try(found)
        except DataError as error:
            return FailedImage(query.name, str(error))
        return found

    def _stored(self, name: str) -> StoredEmbedder | None:
        """The embedder of an input whose features come from a store; None of any other."""
        embedder = self.model.embedders[name]
        return embedder if isinstance(embedder, StoredEmbedder) else None

    def _try(self, example: Example) -> None:
        """Raises DataError for what a reader cannot read: one query of many may be wrong."""
        for name in self.inputs:
            try:
                self.model.embedders[name].reader.read(example)
            except MmgenError as error:
                odd = [example.inputs[field] for field in self.recipe.inputs[name].reads]
                odd = [value for value in odd if isinstance(value, int | float | list | dict)]
                if odd and self._stored(name) is None:
                    raise DataError(f"{name}: cannot read {json.dumps(odd[0])[:40]}: {error}") from None
                raise
            except (TypeError, ValueError, AttributeError, LookupError) as error:
                raise DataError(f"{name}: cannot be read: {error}") from None

    def _value(self, name: str, reader: StoreReader, value: Any, query: Query) -> Record | str:
        """What the reader of stored features takes: a Record, or a key of its store. Raises DataError."""
        try:
            picture = as_picture(value, query)
            if picture is not None:
                return self._extracted(name, picture)
            if isinstance(value, Mapping):
                return _record(query.name, value)
        except (ValueError, TypeError) as error:
            raise DataError(f"{name}: {error}") from None
        if isinstance(value, Record):
            return value
        if not isinstance(value, str):
            raise DataError(f"{name}: give a picture, a key or features, not {str(value)[:40]}")
        if reader.path is None or not reader.path.exists() or value not in reader.store:
            there = f", and no key of {reader.path}" if reader.path and reader.path.exists() else ""
            raise DataError(f"{query.folder / value}: no such file{there}")
        return value

    def _extracted(self, name: str, picture: Picture) -> Record:
        """A picture's features. Raises DataError for a picture that cannot be read."""
        extractor = self.extractor(name)
        with self._lock:  # plugins' extractors need not be fit for several threads
            found = next(iter(extractor.records([picture])), None)
        if found is None or isinstance(found, FailedImage):
            raise DataError(found.reason if found else f"{picture.key}: its extractor gave no features")
        if picture.boxes is not None and (found.boxes is None or len(found.boxes) != len(picture.boxes)):
            raise DataError(f"{picture.key}: the extractor of '{name}' chooses boxes by itself; leave them out")
        return found

    def extractor(self, name: str) -> Extractor:
        """What makes an input's features from a picture, as they were made for learning. Raises UnavailableError."""
        with self._lock:
            if name not in self._extractors:
                self._extractors[name] = self._built(name)
            return self._extractors[name]

    def _built(self, name: str) -> Extractor:
        config, embedder = self.recipe.inputs[name], self._stored(name)
        assert embedder is not None  # only such inputs are given pictures
        learnt = embedder.fingerprint
        made = learnt.get("extractor", "unknown")
        if not isinstance(config, FeaturesConfig) or config.extractor is None or config.extractor.source == "file":
            raise UnavailableError(
                f"{self.where}: '{name}' was learnt from features of {made}, which cannot be made from a picture here; "
                f"give a key of its features, or the extractor that made them: --set inputs.{name}.extractor.type=NAME"
            )
        extractor = config.extractor
        built = extractor.build()
        here = dict(built.fingerprint)
        if here != learnt and not config.allow_other_features:
            other = here.get("extractor") != made
            told = (
                f"learnt from features of {made}, and the extractor here is {extractor.type}"
                if other
                else difference(learnt, here, ("while learning", "here"))
            )
            raise UnavailableError(
                f"{self.where}: the extractor of '{name}' makes other features than it has learnt from ({told}); give "
                "the very extractor that made them, with its settings"
            )
        return built


def fields(recipe: Recipe, query: Query) -> dict[str, Any]:
    """The query's values by the field that is read: those of its inputs, its picture for stored inputs without a
    value. Raises DataError for a name that is neither an input nor a field."""
    known = {field for config in recipe.inputs.values() for field in config.reads}
    found: dict[str, Any] = {}
    for name, value in query.inputs.items():
        reads = recipe.inputs[name].reads if name in recipe.inputs else (name,)
        if name not in recipe.inputs and name not in known:
            names = list(dict.fromkeys([*recipe.inputs, *sorted(known)]))
            raise DataError(
                f"{query.where}: no input is called '{name}'{did_you_mean(name, names)}; there are: {', '.join(names)}"
            )
        if len(reads) != 1 and name not in known:
            raise DataError(f"{query.where}: '{name}' reads {' and '.join(reads)}; give these by their names")
        found[reads[0] if len(reads) == 1 else name] = value
    if query.picture is not None:
        for config in recipe.inputs.values():
            if isinstance(config, FeaturesConfig):
                found.setdefault(config.reads[0], query.picture)
    return found


def lacking(recipe: Recipe, inputs: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """Fields that these inputs read and that are not given; a picture is given to inputs of stored features only."""
    missing = []
    for name in inputs:
        config = recipe.inputs[name]
        for field in config.reads:
            value = given.get(field)
            if value is None or (isinstance(value, Picture) and not isinstance(config, FeaturesConfig)):
                missing.append(field)
    return list(dict.fromkeys(missing))


def _record(key: str, value: Mapping[str, Any]) -> Record:
    """Own features out of JSON. Raises ValueError."""
    if unknown := [name for name in value if name not in ("features", "boxes", "labels")]:
        raise ValueError(f'"{unknown[0]}" is not known; there are picture, features, boxes and labels')
    if "features" not in value:
        raise ValueError('it has neither "picture" nor "features"')
    features = np.asarray(value["features"], np.float32)
    boxes = None if value.get("boxes") is None else np.asarray(value["boxes"], np.float32)
    labels = None if value.get("labels") is None else tuple(map(str, value["labels"]))
    if features.ndim != 2:
        raise ValueError(f"features must be rows of numbers, a row a region, not {features.shape}")
    if boxes is not None and boxes.shape != (len(features), 4):
        raise ValueError(f"boxes must be ({len(features)}, 4), a box a row of features, not {boxes.shape}")
    return Record(key, features, boxes, labels)
