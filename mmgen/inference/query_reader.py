"""Reads queries: binds values to the step's inputs, resolves the pictures of a batch together, makes examples."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any

from ..data.collate import Collator, ReadRow
from ..data.seeds import seed_from
from ..data.unread_text import remarks
from ..errors import DataError
from ..examples import All, Example, ResolvedExample
from ..parts import Backbone, Picture
from .answers import Answer
from .query import Query, values_in
from .query_names import Bound, StepNames
from .query_pictures import QueryFeatures

UNREADABLE = (TypeError, ValueError, AttributeError, LookupError)  # readers raise these for values of a wrong type


@dataclass(frozen=True)
class Prepared:
    """A query whose inputs have been read.

    answer  what is known of its answer
    draws   the seed of its texts, if they are sampled
    """

    query: Query | Example
    answer: Answer
    read: list[ReadRow]
    draws: int | None = None


@dataclass
class _Draft:
    """A query whose values are being read.

    seed      of texts that are sampled
    bound     its values by the step's names; an example of a data set has none
    pictures  of the query
    error     the first mistake; the others are not looked for
    """

    query: Query | Example
    seed: int | None
    bound: Bound = Bound({}, {}, (), ())
    pictures: list[Picture] = field(default_factory=list)
    error: DataError | None = None

    def change(self, name: str, change: Callable[[Any], Any]) -> list[Picture]:
        """Replace the values of an input, each of several for itself. Returns those that are pictures now."""
        values, shown = self.bound.inputs.get(name, {}), list[Picture]()
        for key, value in values.items():
            parts = tuple(map(change, values_in(value)))
            values[key] = All(parts) if isinstance(value, All | list | tuple) else parts[0]
            shown += [part for part in parts if isinstance(part, Picture)]
            self.error = self.error or next((part for part in parts if isinstance(part, DataError)), None)
        return shown


@dataclass
class QueryReader:
    """Reads queries to a step."""

    names: StepNames
    features: QueryFeatures
    collate: Collator
    backbone: Backbone

    def prepare(self, queries: Sequence[Query | Example], seeds: Sequence[int | None] = ()) -> list[Prepared | Answer]:
        """Resolve queries to examples, and read their inputs once. The extractor of an input gets the pictures of all
        queries together. A query that cannot be read has an answer, with the error. `seeds`: of the queries whose texts
        will be sampled."""
        drafts = [self._draft(*pair) for pair in zip(queries, seeds or [None] * len(queries), strict=True)]
        for name, config in self.names.inputs.items():
            if name in self.features.embedders or config.takes in ("picture", "file"):
                self._resolve(name, [draft for draft in drafts if not draft.error])
        return [self._read(draft) for draft in drafts]

    def _resolve(self, name: str, drafts: Sequence[_Draft]) -> None:
        """Replace the values of an input for pictures or files by what its reader reads."""
        pictures = list[Picture]()
        for draft in drafts:
            if isinstance(draft.query, Query):
                draft.pictures += (shown := draft.change(name, partial(self.features.part, name, draft.query)))
                pictures += shown
        if name in self.features.embedders:
            records = dict(zip(map(id, pictures), self.features.records(name, pictures), strict=True))
            for draft in drafts:
                draft.change(name, lambda part: records.get(id(part), part))

    def _draft(self, query: Query | Example, seed: int | None) -> _Draft:
        if isinstance(query, Example):
            return _Draft(query, seed)
        try:
            bound = self.names.bind_exactly(query)
            for name, values in bound.inputs.items():
                for value in values.values():
                    if self.names.takes[name] == "text" and not isinstance(value, str):
                        raise DataError(f"'{name}' must be a string, not {value!r:.40}")
            return _Draft(query, seed, bound)
        except DataError as error:
            return _Draft(query, seed, error=error)

    def _read(self, draft: _Draft) -> Prepared | Answer:
        """A draft with its inputs read, or its error."""
        query, names = draft.query, self.names
        try:
            if draft.error:
                raise draft.error
            with readable(names.reads):
                read = self.collate.read(query if isinstance(query, Example) else _example_of(query, draft.bound))
        except DataError as error:
            return Answer(query.id, error=message(query, error))
        said = [
            remark
            for row in read
            for name in row.items
            for remark in remarks(name, names.inputs[name], self.backbone, row.example.seen_by(name))
        ]
        answer = Answer(
            query.id,
            remarks=tuple(dict.fromkeys(said)),
            choices=tuple(read[0].example.labels.get("choices", ())),
            pictures=tuple(draft.pictures),
            seed=draft.seed,
        )
        return Prepared(query, answer, read, None if draft.seed is None else _seed_of_texts(draft.seed, answer, read))


def _example_of(query: Query, bound: Bound) -> ResolvedExample:
    """The example of a query, for the readers: two inputs that read one field may be given different values."""
    inputs = {key: value for values in reversed(bound.inputs.values()) for key, value in values.items()}
    overrides = {
        name: changed
        for name, values in bound.inputs.items()
        if (changed := {key: value for key, value in values.items() if value is not inputs[key]})
    }
    return ResolvedExample(query.id, inputs, query.texts, labels=bound.labels, overrides=overrides)


@contextlib.contextmanager
def readable(names: str) -> Iterator[None]:
    """Words errors of files that are not there and of values of a wrong type, which readers meet. `names`: of the
    values."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{names}: {error}") from None
    except UNREADABLE as error:
        kind = type(error).__name__
        raise DataError(
            f"{names}: a value has a form that cannot be read ({kind}); see the examples of the data set"
        ) from None


def message(query: Query | Example, error: DataError) -> str:
    """What is wrong with a query, in one line that names it."""
    where = query.where if isinstance(query, Query) else f"example '{query.id}'"
    return str(error) if where in str(error) else f"{where}: {error}"


def _seed_of_texts(seed: int, answer: Answer, read: Sequence[ReadRow]) -> int:
    """The seed of a query's texts. It depends on what the query says and shows: neither its id nor other queries change
    it, so that a query has the same texts alone and among others."""
    digest = blake2b(digest_size=16)
    said = [read[0].example.inputs, read[0].example.labels]
    digest.update(json.dumps(said, sort_keys=True, default=lambda shown: None).encode())
    for picture in answer.pictures:
        image = picture.load()
        digest.update(repr((image.size, picture.boxes)).encode() + image.tobytes())
    return seed_from(seed, digest.hexdigest())
