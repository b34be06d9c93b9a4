"""Queries from Python values, image files, folders of images, JSONL lines and NAME=VALUE pairs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..examples import All, Example
from ..features.images import SUFFIXES, image_files
from ..reading.text import json_lines

PICTURE = "picture"  # the name of a value for the only input that takes pictures
LINE = '{"image": "photo.jpg"}'


@dataclass(frozen=True)
class Query:
    """One query to a step.

    id      the id of the answer
    inputs  values by the names of inputs, of fields that the inputs read, and of labels such as choices; "picture" is
            for the only input that takes pictures. A value for an input of stored features is a picture in any form
            (`mmgen.inference.query_pictures.as_picture`), a key of the run's features, or features; a list or `All` of
            these is several pictures together
    texts   whose likelihood is asked for; or the one text with blanks to fill
    folder  the base of relative paths of pictures and files; None: a stranger asks, and strings are no paths or keys,
            but base64 of a file
    place   file and line of the query, for errors
    """

    id: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = Path()
    place: str = ""
    texts: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        return self.place or self.id


def queries_of(values: Iterable[Any]) -> list[Query | Example]:
    """The queries that values in Python are: mappings from names to values, pictures in any form, `Query` and
    `Example` of a data set. Raises DataError."""
    if isinstance(values, str | bytes | Mapping):
        raise DataError(f"{values!r:.60} is one query; use ask or predict, or give a list")
    return [_query_of(value, f"query {number}") for number, value in enumerate(values, 1)]


def _query_of(value: Any, name: str) -> Query | Example:
    if isinstance(value, Query | Example):
        return value
    if isinstance(value, Mapping):
        return Query(name, value)
    return Query(str(value) if isinstance(value, str | Path) else name, {PICTURE: value})


def with_texts(query: Query | Example, texts: Any) -> Any:
    """The query about these texts. Raises DataError for anything else than texts."""
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{getattr(query, 'where', query.id)}: 'texts' must be a list of strings, not {texts!r:.60}")
    if isinstance(query, Example):
        return replace(query, targets=tuple(texts))
    return replace(query, texts=tuple(texts))


def with_texts_of_line(query: Query) -> Query:
    """The query of a line about its own `text` or `texts`. Raises DataError."""
    inputs = dict(query.inputs)
    text, texts = inputs.pop("text", None), inputs.pop("texts", None)
    if text is None and texts is None:
        raise DataError(f'{query.where}: no text; add "text", or a list of "texts"')
    return with_texts(replace(query, inputs=inputs), [text] if texts is None else texts)


def read_sources(sources: Sequence[Path], inputs: Mapping[str, Any] | None = None) -> list[Query]:
    """Queries from image files, folders of images, and JSONL files whose fields are inputs. `inputs` are
    added to every query; without sources, they are the only query. Raises DataError, also for two queries of the same
    id."""
    named = _filled(inputs or {})
    if not sources:
        return [Query(" and ".join(named), named)]
    queries: dict[str, Query] = {}
    for query in (query for source in sources for query in _queries_in(source, named)):
        if (first := queries.setdefault(query.id, query)) is not query:
            raise DataError(f"{query.where}: duplicate id {query.id!r:.60}, also in {first.where}; ids must be unique")
    if not queries:
        places = ", ".join(map(str, sources))
        raise DataError(f"{places}: no queries; give images ({', '.join(SUFFIXES)}), or one JSON object per line")
    return [*queries.values()]


def _queries_in(source: Path, named: Mapping[str, Any]) -> Iterator[Query]:
    """The queries of one source. The id of a picture is its path, that of a line by default file and line."""
    if source.is_dir():
        yield from (Query(str(path), {**named, PICTURE: path}) for path in image_files(source))
    elif source.suffix == ".jsonl":
        for number, entry in json_lines(source):
            place = f"{source}:{number}"
            if not isinstance(entry, dict):
                raise DataError(f"{place}: not a JSON object; write one such as {LINE}")
            id_ = str(entry.pop("id", f"{source.name}:{number}"))
            yield Query(id_, {**named, **_filled(entry)}, source.parent, place)
    elif source.exists():
        yield Query(str(source), {**named, PICTURE: source})
    else:
        raise DataError(f"{source}: no such file; give an image, a folder of images, or a JSONL file")


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without null, empty strings and empty lists."""
    return {name: value for name, value in values.items() if value not in (None, "", [])}


def named_values(pairs: Iterable[str]) -> dict[str, Any]:
    """Values from NAME=VALUE pairs; a repeated name gets a list of values (the two pictures of NLVR2). Raises
    DataError."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise DataError(f"--input {pair}: write NAME=VALUE, such as --input caption='a dog on a beach'")
        values[name] = [*values_in(values[name]), value] if name in values else value
    return values


def values_in(value: Any) -> tuple[Any, ...]:
    """The values of one input of a query: several pictures or files together, or the only one."""
    return value.values if isinstance(value, All) else tuple(value) if isinstance(value, list | tuple) else (value,)


def from_json(value: Any) -> Any:
    """The value, parsed if it is a JSON list or object: --input choices='["a dog", "a cat"]'."""
    with contextlib.suppress(ValueError):  # a text that starts like JSON
        if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
            return json.loads(value)
    return value
