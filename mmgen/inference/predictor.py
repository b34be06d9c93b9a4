"""Answer queries with one step of a run: pictures become features as they were made for learning."""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..configs import FeaturesConfig
from ..data.collate import Collator
from ..data.seeds import resolve
from ..data.unread_text import remarks
from ..decoding import Decoding
from ..errors import DataError, MmgenError, RunError, UnavailableError
from ..evaluation.generate import generate
from ..evaluation.predict import predict
from ..features.embedder import StoredEmbedder, StoreReader
from ..features.fingerprints import difference
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, ADVICE_SMALLER, OomRetry
from ..parts import Extractor, FailedImage, Picture, Record
from ..recipe.tables import Recipe
from ..tensors import All, Example, Generation, Prediction, ResolvedExample
from .given import by_input, called, inputs_asked, labels_asked, lacking, may_be_read, may_fill, steps_read, unread
from .own_features import checked_picture, checked_record, record
from .query import Query, as_picture, decoded, listed

log = logging.getLogger("mmgen")

Answer = TypeVar("Answer")
Outcome = tuple[Query, "list[Generation] | FailedImage"]


class Asker:
    """One step of a run, ready to answer. Extractors are built when a picture first wants them, once; any number of
    threads may call.

    where  the run's folder, for errors
    """

    def __init__(self, recipe: Recipe, step: str, model: Model, where: Path) -> None:
        self.recipe, self.step, self.model, self.where = recipe, step, model, where
        self.inputs, self.labels = recipe.steps[step].inputs, labels_asked(recipe, step)
        self._extractors: dict[str, Extractor] = {}
        self._lock = threading.Lock()

    def answers(self, queries: Iterable[Query], options: Decoding, at_once: int = 1) -> Iterator[Outcome]:
        """Texts for every query, best first; what cannot be read (a broken picture, an unknown key) gives its reason
        instead. `at_once`: queries that are answered together, which is quicker, and later for the first.

        Raises DataError for a query that names no input, or not just what the step reads; where it is a line of a file,
        the reason takes the place of its texts."""
        retry = OomRetry("writing", ADVICE_FEWER_TEXTS)
        return self._answered(
            queries, at_once, lambda some: generate(self.model, some, options, self.inputs, retry=retry)
        )

    def predictions(
        self, queries: Iterable[Query], at_once: int = 1
    ) -> Iterator[tuple[Query, Prediction | FailedImage]]:
        """What a step that writes no texts predicts for every query; all else is as in `answers`. Raises RunError for a
        step that writes."""
        predicts = self.recipe.predicts(self.step)
        if predicts is None or self.recipe.makes_texts(self.step):
            raise RunError(
                f"{self.where}: the step '{self.step}' predicts nothing but texts; ask it with `mmgen generate`"
            )
        name, retry = predicts[0], OomRetry("predicting", ADVICE_SMALLER)
        return self._answered(queries, at_once, lambda some: predict(self.model, some, name, self.inputs, retry=retry))

    def _answered(
        self, queries: Iterable[Query], at_once: int, answer: Callable[[Sequence[Example]], Sequence[Answer]]
    ) -> Iterator[tuple[Query, Answer | FailedImage]]:
        coming = iter(queries)
        while some := list(itertools.islice(coming, at_once)):
            read = [self.example(query) for query in some]
            found = iter(answer([one for one in read if isinstance(one, Example)]))
            for query, one in zip(some, read, strict=True):
                yield query, one if isinstance(one, FailedImage) else next(found)

    def example(self, query: Query) -> Example | FailedImage:
        """What the readers read: for every input, values under the fields of its config."""
        try:
            given = self._given(query)
        except DataError as error:
            if not query.place:
                raise
            return FailedImage(query.name, str(error))
        own: dict[str, dict[str, Any]] = {}
        try:
            for name in self.inputs:
                stored = self._stored(name)
                own[name] = {
                    field: self._of_rows(field, value)
                    if stored is None
                    else self._shown(name, stored.reader, value, query)
                    for field, value in given.get(name, {}).items()
                }
            merged = {field: value for values in reversed(own.values()) for field, value in values.items()}
            others = {
                name: {field: value for field, value in values.items() if value is not merged[field]}
                for name, values in own.items()
            }
            labels = {
                name: self._of_rows(name, value)
                for name in self.labels
                if (value := query.inputs.get(name)) is not None
            }
            inputs, of_rows = self._beside(query)
            found = ResolvedExample(query.name, {**merged, **inputs}, labels={**labels, **of_rows}, overrides=others)
            self._try(found)
            self._try_objective(found)
        except DataError as error:
            return FailedImage(query.name, str(error))
        for name in self.inputs:
            for remark in remarks(name, self.recipe.inputs[name], self.model.backbone, found.seen_by(name)):
                log.warning("%s: %s", query.where, remark)
        return found

    def _of_rows(self, name: str, value: Any) -> Any:
        """A value of a field or label; of what the step's rows are made of, a list that may have been typed."""
        rows = may_fill(self.recipe, self.step)
        return listed(value) if rows and name in {*rows, *self.labels} else value

    def _beside(self, query: Query) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a query gives for fields that need not be there: of the example, and of each of its rows. Raises
        DataError."""
        inputs: dict[str, Any] = {}
        of_rows: dict[str, Any] = {}
        rows = may_fill(self.recipe, self.step)
        for own, config in may_be_read(self.recipe, self.step).items():
            if (value := query.inputs.get(own)) is None:
                continue
            try:
                value = decoded(value)
                if own not in rows:
                    inputs[own] = config.asked(own, value)
                elif not isinstance(value, list):
                    raise ValueError(f"{str(value)[:60]} is no list; give one for each row")
                else:
                    made = [config.asked(own, one) for one in value]
                    of_rows[own] = [one.values if isinstance(one, All) else one for one in made]
            except (ValueError, RecursionError) as error:
                raise DataError(f"{own}: {error}") from None
        return inputs, of_rows

    def _given(self, query: Query) -> dict[str, dict[str, Any]]:
        """Input -> field -> value, for all that the step reads. Raises DataError."""
        if query.problem:
            raise DataError(query.problem)
        given = by_input(self.recipe, query)
        if missing := lacking(self.recipe, self.step, given):
            raise DataError(
                f"{query.where}: the step '{self.step}' reads {' and '.join(self.inputs)}, and there is no {missing[0]}"
            )
        if left := unread(self.recipe, query, self.step, given):
            raise DataError(
                f"{query.where}: {called(left[0])} is not read by the step '{self.step}'; leave it out, or choose "
                f"another step: {steps_read(self.recipe, list(self.recipe.steps))}"
            )
        return {name: {field: one.value for field, one in given[name].items()} for name in self.inputs if name in given}

    def _stored(self, name: str) -> StoredEmbedder | None:
        """The embedder of an input whose features come from a store; None of any other."""
        embedder = self.model.embedders[name]
        return embedder if isinstance(embedder, StoredEmbedder) else None

    def _try(self, example: Example) -> None:
        """Raises DataError for what a reader cannot read: one query of many may be wrong."""
        for name in inputs_asked(self.recipe, self.step):
            seen, fields = resolve(example).seen_by(name), self.recipe.inputs[name].reads
            try:
                self.model.embedders[name].reader.read(seen)
            except MmgenError as error:
                odd = [(field, value) for field in fields if not isinstance(value := seen.inputs.get(field), str)]
                if not odd or self._stored(name) is not None:
                    raise
                (field, value), *_ = odd
                shown = json.dumps(value, default=str)[:40]
                if f"has no {field}" in str(error):  # a reader of texts says this of all that is no text
                    raise DataError(f"{name} must be a text, not {shown}") from None
                raise DataError(f"{name}: cannot read {shown}: {error}") from None
            except (TypeError, ValueError, AttributeError, LookupError) as error:
                raise DataError(f"{name}: cannot be read: {error}") from None

    def _try_objective(self, example: Example) -> None:
        """Raises DataError for what the objective that predicts cannot be asked: it may need more than inputs."""
        predicts = self.recipe.predicts(self.step)
        if predicts is None or self.recipe.makes_texts(self.step):
            return
        try:
            Collator(self.model, self.inputs, (predicts[0],), asks=True)([resolve(example)])
        except MmgenError as error:
            wanted = [name for name in self.labels if name not in example.labels and name in str(error)]
            mend = f'; give it with --input {wanted[0]}=VALUE, or as "{wanted[0]}" in a line' if wanted else ""
            raise DataError(f"{error}{mend}") from None
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            raise DataError(f"{' and '.join(example.labels)}: cannot be read: {error}") from None

    def _shown(self, name: str, reader: StoreReader, value: Any, query: Query) -> Record | str | All:
        """A picture, a key or features, or a list of them that are all shown. Raises DataError."""
        if not isinstance(value, list | tuple):
            return self._value(name, reader, value, query)
        return All(tuple(self._value(name, reader, one, query) for one in value))

    def _value(self, name: str, reader: StoreReader, value: Any, query: Query) -> Record | str:
        """What the reader of stored features takes: a Record, or a key of its store. Raises DataError."""
        try:
            picture = as_picture(value, query)
            if picture is not None:
                return self._extracted(name, checked_picture(picture))
            if isinstance(value, Mapping):
                return record(query.name, value)
            if isinstance(value, Record):
                return checked_record(value)
        except (ValueError, TypeError) as error:
            raise DataError(f"{name}: {error}") from None
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
