"""Reads queries: binds values to the step's inputs, resolves the pictures of a batch together, makes examples."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..data.collate import Collator, ReadExample
from ..data.unread_text import remarks
from ..errors import DataError
from ..examples import Example, ResolvedExample
from ..parts import Backbone, Picture
from .answers import Answer
from .query import Query
from .query_features import QueryFeatures
from .query_names import Bound, StepNames

UNREADABLE = (TypeError, ValueError, AttributeError, LookupError)  # readers raise these for values of a wrong type


@dataclass(frozen=True)
class Prepared:
    """A query before its answer is computed. `read`: the example with its inputs read; None if `answer` has an
    error."""

    query: Query | Example
    answer: Answer
    read: ReadExample | None = None


@dataclass
class _Draft:
    """A query whose values are being read.

    bound     its values by the step's names; None for an example of a data set
    values    input -> field -> what the input's reader gets
    pictures  of the query
    error     the first mistake; the others are not looked for
    """

    query: Query | Example
    bound: Bound | None = None
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    pictures: list[Picture] = field(default_factory=list)
    error: DataError | None = None


@dataclass
class QueryReader:
    """Reads queries to a step. `chooses`: whether the step predicts a choice, so that each row of an example is one."""

    names: StepNames
    features: QueryFeatures
    collate: Collator
    backbone: Backbone
    chooses: bool

    def prepare(self, queries: Sequence[Query | Example]) -> list[Prepared]:
        """Resolve queries to examples, and read their inputs once. The extractor of an input gets the pictures of all
        queries together."""
        drafts = [self._draft(query) for query in queries]
        for name in self.names.inputs:
            places = [
                (draft, draft.bound.query, key, value)
                for draft in drafts
                if draft.bound and not draft.error
                for key, value in draft.bound.inputs.get(name, {}).items()
            ]
            resolved = self.features.resolve(name, [(query, value) for _, query, _, value in places])
            for (draft, _, key, _), (value, pictures) in zip(places, resolved, strict=True):
                draft.error = draft.error or (value if isinstance(value, DataError) else None)
                draft.values.setdefault(name, {})[key] = value
                draft.pictures += pictures
        return [self._read(draft) for draft in drafts]

    def _draft(self, query: Query | Example) -> _Draft:
        try:
            bound = self.names.bind_exactly(query) if isinstance(query, Query) else None
            for name, values in bound.inputs.items() if bound else ():
                for key, value in values.items():
                    if self.names.takes[name] == "text" and key not in self.names.filled and not isinstance(value, str):
                        raise DataError(f"'{name}' must be a string, not {json.dumps(value, default=str)[:40]}")
            return _Draft(query, bound)
        except DataError as error:
            return _Draft(query, error=error)

    def _read(self, draft: _Draft) -> Prepared:
        """A draft with its inputs read, or its error."""
        query, names = draft.query, self.names
        try:
            if draft.error:
                raise draft.error
            with readable(names.reads):
                read = self.collate.read(query if isinstance(query, Example) else self._example_of(draft))
        except DataError as error:
            return Prepared(query, Answer(query.id, error=message(query, error)))
        found = [
            remark
            for row in read.rows
            for name in row.items
            for remark in remarks(name, names.inputs[name], self.backbone, row.example.seen_by(name))
        ]
        choices = [
            value
            for row in (read.rows if self.chooses else ())
            for key, value in row.example.inputs.items()
            if key in names.filled and isinstance(value, str)
        ]
        pictures, said = tuple(draft.pictures), tuple(dict.fromkeys(found))
        return Prepared(query, Answer(query.id, remarks=said, choices=tuple(choices), pictures=pictures), read)

    def _example_of(self, draft: _Draft) -> ResolvedExample:
        """The example of a query, for the readers."""
        assert draft.bound is not None  # of a query
        inputs = {key: value for values in reversed(draft.values.values()) for key, value in values.items()}
        overrides = {
            name: changed
            for name, values in draft.values.items()
            if (changed := {key: value for key, value in values.items() if value is not inputs[key]})
        }
        return ResolvedExample(draft.query.id, inputs, labels=draft.bound.labels, overrides=overrides)


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
