"""Queries from Python values, image files, folders of images, JSONL lines and NAME=VALUE pairs, with their checks."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from .. import files
from ..errors import DataError
from ..examples import Example
from ..features.images import SUFFIXES, image_files
from ..files import json_problem
from ..oom import as_run_error
from ..progress import Progress
from ..reading.tables import is_table
from ..reading.text import LONGEST, numbered_lines, read_text
from .query_pictures import is_file

LONG = 10_000  # lines of a file that takes seconds to read
MOST_LINES = 10_000_000  # queries of a file; each takes about a kilobyte of memory
LINE = '{"image": "photo.jpg"}'


@dataclass(frozen=True)
class Query:
    """One query to a step.

    id       the id of the answer
    inputs   values by the names of inputs, of fields that the inputs read, and of labels such as choices. For an input
             of stored features: a picture in any form (`mmgen.inference.query_pictures.as_picture`), a key of the run's
             features, or features; a list or `All` of these for several pictures together
    picture  the value for the only input of the step that takes pictures
    folder   the base of relative paths of pictures and files; None: a stranger asks, and no string is a path or a key
    place    file and line of the query, for errors
    problem  why that line cannot be read; empty if it can be read
    """

    id: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    picture: Any = None
    folder: Path | None = Path()
    place: str = ""
    problem: str = ""

    @property
    def where(self) -> str:
        return self.place or self.id

    def check(self) -> None:
        """Raises DataError for a line that cannot be read, and for texts that are too long or neither valid Unicode nor
        the name of a file."""
        if self.problem:
            raise DataError(self.problem)
        for name, value in (*self.inputs.items(), ("picture", self.picture)):
            for text in _strings_in(value):
                if len(text) > LONGEST:
                    raise DataError(
                        f"{self.where}: {name!r:.60} has {len(text):,} characters; the limit is {LONGEST:,}"
                    )
                if text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text):
                    continue
                if self.folder is None or not is_file(self.folder / text):
                    raise DataError(f"{self.where}: {name!r:.60} contains a lone surrogate ({text!r:.60}); remove it")


def queries_of(value: Any, inputs: Mapping[str, Any]) -> list[Query | Example]:
    """The queries of a Python call: one per element if the value `is_many`, else one. `inputs` are defaults for every
    query; of an opened file, the bytes are. Raises DataError for a tuple."""
    if not is_many(value):
        return [_query_of_value(value, inputs, "this query")]
    inputs = {name: _bytes_of_file(default) for name, default in inputs.items()}
    return [_query_of_value(element, inputs, str(number)) for number, element in enumerate(value, 1)]


def _bytes_of_file(value: Any) -> Any:
    """The bytes of a file opened for reading; any other value itself, also a file that cannot be read, which is an
    error of each query."""
    if not hasattr(value, "read"):
        return value
    try:
        content = value.read()
    except (OSError, ValueError):
        return value
    return content if isinstance(content, bytes) and content else value


def is_many(value: Any) -> bool:
    """Whether a value is several queries: a list, or the examples of a split."""
    if isinstance(value, str | bytes | bytearray | memoryview) or not isinstance(value, Sequence):
        return False
    return isinstance(value, list) or (len(value) > 0 and isinstance(value[0], Example))


def _query_of_value(value: Any, inputs: Mapping[str, Any], name: str) -> Query | Example:
    if isinstance(value, tuple):
        raise DataError("a tuple is not a query; give a list of queries, or All((a, b)) for two pictures of one query")
    if isinstance(value, Example):
        return value
    if isinstance(value, Query):
        return replace(value, inputs={**inputs, **value.inputs})
    if isinstance(value, Mapping):
        return Query(name, {**inputs, **value})
    return Query(str(value) if isinstance(value, str | Path) else name, inputs, value)


def read_sources(
    sources: Sequence[Path],
    inputs: Mapping[str, Any] | None = None,
    check: Callable[[Query], None] = lambda query: None,
    progress: Progress | None = None,
    table: Callable[[Path], list[tuple[int, str]]] | None = None,
) -> list[Query]:
    """Queries from image files, folders of images, tables, and JSONL files whose fields are inputs. `inputs` are added
    to every query; without sources, they are the only query. A line that cannot be read becomes a query with a
    `problem`. Raises DataError, and RunError if a file does not fit into memory.

    check     raises DataError for a query that cannot be answered; in a long file, `progress` says the first such line
              at once
    table     reads the rows of a table as lines of JSON (`query_tables.table_reader`)
    """
    named = {name: value for name, value in (inputs or {}).items() if not _is_empty(value)}
    queries: list[Query] = []
    for source in sources:
        if source.is_dir():
            paths = list(image_files(source))
            if not paths:
                raise DataError(f"{source}: the folder has no images ({', '.join(SUFFIXES)})")
            queries += [Query(str(path), named, path) for path in paths]
        elif source.suffix == ".jsonl" or (table and is_table(source)):
            with as_run_error(str(source), "split the file into smaller files"):
                lines = table(source) if table and is_table(source) else None
                queries += _queries_of_lines(source, named, check, progress or Progress(), lines)
        elif source.exists():
            queries.append(Query(str(source), named, source))
        else:
            raise DataError(f"{source}: no such file; give an image, a folder of images, a table, or a JSONL file")
    if sources and not queries:
        raise DataError(f"{', '.join(map(str, sources))}: no queries; write one JSON object per line, such as {LINE}")
    return queries or [Query(" and ".join(named), named)]


def named_values(pairs: Iterable[str]) -> dict[str, Any]:
    """Values from NAME=VALUE pairs; a repeated name gets a list of values (the two pictures of NLVR2). Raises
    DataError."""
    values: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise DataError(f"--input {pair}: write NAME=VALUE, such as --input caption='a dog on a beach'")
        values.setdefault(name, []).append(_as_utf_8(name, value))
    return {
        name: repeated_values[0] if len(repeated_values) == 1 else repeated_values
        for name, repeated_values in values.items()
    }


def from_json(value: Any) -> Any:
    """The value, parsed if it is a JSON string: --input choices='["a dog", "a cat"]'. Raises ValueError."""
    if isinstance(value, list):
        return [from_json(element) for element in value]
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(json_problem(error)) from None


def _as_utf_8(name: str, value: str) -> str:
    """An argument decoded as UTF-8 in any locale. (Python passes undecodable bytes as lone surrogates.) Raises
    DataError."""
    try:
        return os.fsencode(value).decode("utf-8")
    except UnicodeError:
        raise DataError(f"--input {name}: the value is not UTF-8; write it in UTF-8") from None


def refuse_overwriting(out: Path | None, sources: Sequence[Path] = (), queries: Iterable[Query] = ()) -> None:
    """Raises RunError if --out would overwrite a source, or a picture that a query names; otherwise as
    `files.refuse_overwriting`."""
    values = (
        (query.folder or Path()) / value
        for query in queries
        for field_value in (query.picture, *query.inputs.values())
        for value in (field_value if isinstance(field_value, list) else [field_value])
        if isinstance(value, str | Path)
    )
    files.refuse_overwriting("--out", out, chain(sources, values))


def _queries_of_lines(
    source: Path,
    named: Mapping[str, Any],
    check: Callable[[Query], None],
    progress: Progress,
    lines: Sequence[tuple[int, str]] | None = None,
) -> list[Query]:
    """The queries of a JSONL file, or of the `lines` of a table, with unique ids. Raises DataError for a file of too
    many lines."""
    text = read_text(source) if lines is None else ""
    total = sum(1 for _ in islice(numbered_lines(text), MOST_LINES + 1)) if lines is None else len(lines)
    if total > MOST_LINES:
        raise DataError(f"{source}: has more than {MOST_LINES:,} queries; split the file into smaller files")
    said = total <= LONG  # a short file is answered at once
    numbered: list[tuple[int, bool, Query]] = []  # line number, whether the line has an id, query
    with (Progress() if said else progress).task(f"reading {source.name}", total, "lines") as advance:
        for count, (number, line) in enumerate(numbered_lines(text) if lines is None else lines, 1):
            query, has_id = _query_of_text(line, source, number, named)
            numbered.append((number, has_id, query))
            if not said:
                try:
                    query.check()
                    check(query)
                except DataError as error:
                    progress.say(f"{error}; reading the other lines")
                    said = True
            if count % LONG == 0 or count == total:
                advance((count - 1) % LONG + 1)
    times = Counter(query.id for _, _, query in numbered)
    first: dict[str, int] = {}
    queries = []
    for number, has_id, query in numbered:
        if times[query.id] > 1 and not has_id:
            query = replace(query, id=f"{query.id}:{number}")
        elif (line_before := first.setdefault(query.id, number)) != number and not query.problem:
            problem = f"{query.place}: duplicate id {query.id!r:.60}, also in line {line_before}; ids must be unique"
            query = replace(query, id=str(number), problem=problem)
        queries.append(query)
    return queries


def _query_of_text(line: str, source: Path, number: int, named: Mapping[str, Any]) -> tuple[Query, bool]:
    """The query of a line, and whether the line gives its id."""
    place = f"{source}:{number}"
    try:
        entry = json.loads(line)
        return _query_of_line(entry, source, number, named), entry.get("id") is not None
    except DataError as error:
        problem = f"{place}: invalid line ({error}); write a JSON object such as {LINE}"
    except (ValueError, RecursionError) as error:
        problem = f"{place}: invalid line ({json_problem(error)}); write a JSON object such as {LINE}"
    return Query(str(number), place=place, problem=problem), True


def _query_of_line(entry: Any, source: Path, number: int, named: Mapping[str, Any]) -> Query:
    """The query of a line of a JSONL file. Raises DataError."""
    if not isinstance(entry, dict):
        raise DataError("not a JSON object")
    values = {name: value for name, value in entry.items() if name != "id" and not _is_empty(value)}
    ident = entry.get("id")
    if ident is not None and (not isinstance(ident, str | int) or isinstance(ident, bool)):
        raise DataError(f'"id" must be a string, not {json.dumps(ident)[:40]}')
    if not values and not named:
        raise DataError("the object has no inputs")
    if ident is None:
        texts = [value for value in values.values() if isinstance(value, str)]
        pictures = (text for text in texts if text.lower().endswith(SUFFIXES))
        ident = values["image"] if values.get("image") in texts else next(pictures, number)
    return Query(str(ident), {**named, **values}, folder=source.parent, place=f"{source}:{number}")


def _is_empty(value: Any) -> bool:
    """Whether a value is null, an empty string or an empty list."""
    return value is None or (isinstance(value, str | list) and not value)


def _strings_in(value: Any) -> Iterator[str]:
    """The strings in a value and its nested lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _strings_in(element)
