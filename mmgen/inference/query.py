"""Queries: what a run is asked about, from image files, folders of them, JSONL lines and named values."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import files
from ..errors import DataError, RunError, regular
from ..features.extract import picture
from ..features.images import SUFFIXES, image_files
from ..parts import Picture

LINE = '{"image": "photo.jpg"}'
OF_A_RUN = (
    "steps",
    "backbone",
    "probes",
    "curves",
    "recipe.json",
    "environment.json",
    "data.json",
    "inputs.json",
    "examples",
    "examples.jsonl",
    "report.html",
    "table.md",
    "times.json",
)


@dataclass(frozen=True)
class Query:
    """What to ask about.

    inputs   value by input, or by a field that an input reads. For an input whose features are stored: a picture (its
             path, a `Picture`, an opened image), a key of the run's store, or features (a `Record`; in JSON
             {"picture", "boxes", "labels"} or {"features", "boxes", "labels"}). For any other what its reader reads
    picture  for every such input that `inputs` gives nothing for
    folder   where relative paths of pictures begin
    place    the line of a file where it was written, for errors
    problem  why the line cannot be read; empty where it can
    """

    name: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    picture: Any = None
    folder: Path = Path()
    place: str = ""
    problem: str = ""

    @property
    def where(self) -> str:
        return self.place or self.name


def requests(sources: Sequence[Path], inputs: Mapping[str, Any] | None = None) -> list[Query]:
    """Queries from image files, folders of images, and JSONL files whose fields are inputs; `inputs` are given to each
    of them, and make one alone where there are no sources. A line that cannot be read becomes a query with a `problem`.
    Raises DataError."""
    named = {name: value for name, value in (inputs or {}).items() if not _nothing(value)}
    found: list[Query] = []
    for source in sources:
        if source.is_dir():
            paths = list(image_files(source))
            if not paths:
                raise DataError(f"{source}: holds no images ({', '.join(SUFFIXES)})")
            found += [Query(str(path), named, picture(path)) for path in paths]
        elif source.suffix == ".jsonl":
            found += _listed(source, named)
        elif source.exists():
            found.append(Query(str(source), named, picture(source)))
        else:
            raise DataError(f"{source}: no such file; give an image, a folder of images, or a JSONL file of them")
    if sources and not found:
        raise DataError(f"{', '.join(map(str, sources))}: nothing to ask about; give a JSON object a line, like {LINE}")
    return found or [Query(" and ".join(named), named)]


def named_values(pairs: Iterable[str]) -> dict[str, Any]:
    """NAME=VALUE; a name that is given again has a list of values (the two pictures of NLVR2). Raises DataError."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise DataError(f"--input {pair}: write NAME=VALUE, like --input caption='a dog on a beach'")
        found.setdefault(name, []).append(_decoded(name, value))
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def decoded(value: Any) -> Any:
    """A value that may have been typed as JSON: --input question_mentions='[[12, 15, [0]]]'. Raises ValueError."""
    if isinstance(value, list):
        return [decoded(one) for one in value]
    return json.loads(value) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value


def listed(value: Any) -> Any:
    """The list that may have been typed as JSON: --input choices='["a dog", "a cat"]'; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # a text that begins like that
        return value


def _decoded(name: str, value: str) -> str:
    """What was typed, as UTF-8 whatever the locale makes of it: Python hands on bytes that this has no letters for as
    lone surrogates. Raises DataError."""
    try:
        return os.fsencode(value).decode("utf-8")
    except UnicodeError:
        raise DataError(f"--input {name}: holds a byte that is not UTF-8; give it in UTF-8") from None


def refuse_overwriting(out: Path, run: Path, sources: Sequence[Path], queries: Iterable[Query]) -> None:
    """Raises RunError where writing `out` would destroy what is asked about, the run, or what is no text."""
    if not out.exists():
        return
    own, place = out.resolve(), run.resolve()
    mine = own.relative_to(place).parts[0] in OF_A_RUN if own.is_relative_to(place) and own != place else False
    values = {
        (query.folder / value).resolve()
        for query in queries
        for given in query.inputs.values()
        for value in (given if isinstance(given, list) else [given])
        if isinstance(value, str | Path) and "\0" not in str(value) and len(str(value)) < 4096
    }
    asked = own in values or any(
        source.resolve() == own
        or (source.is_dir() and own.is_relative_to(source.resolve()) and own.suffix.lower() in SUFFIXES)
        for source in sources
    )
    if mine or asked:
        what = "belongs to the run" if mine else "is what you ask about"
        raise RunError(f"--out {out}: {what}, and would be overwritten; name another file")
    files.refuse_overwriting("--out", out, ())


def _listed(source: Path, named: Mapping[str, Any]) -> list[Query]:
    """The queries of a JSONL file, each with an id of its own."""
    found: list[tuple[int, bool, Query]] = []  # line, whether it gives its id, the query
    for number, line in enumerate(_text(source).split("\n"), 1):
        if not line.strip():
            continue
        place = f"{source}:{number}"
        try:
            entry = json.loads(line)
            query = _query(entry, source, number, named)
            found.append((number, entry.get("id") is not None, query))
        except (ValueError, RecursionError) as error:
            problem = f"{place}: not a line like {LINE}: {error}"
            found.append((number, True, Query(str(number), place=place, problem=problem)))
    times = Counter(query.name for _, _, query in found)
    first: dict[str, int] = {}
    queries = []
    for number, named_itself, query in found:
        if times[query.name] > 1 and not named_itself:
            query = replace(query, name=f"{query.name}:{number}")
        elif (line_before := first.setdefault(query.name, number)) != number and not query.problem:
            problem = f"{query.place}: the id '{query.name}' is that of line {line_before} too; give it another"
            query = replace(query, name=str(number), problem=problem)
        queries.append(query)
    return queries


def _text(source: Path) -> str:
    try:
        return regular(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}; save it as UTF-8, a JSON object a "
            "line"
        ) from None


def _query(entry: Any, source: Path, number: int, named: Mapping[str, Any]) -> Query:
    """A line of a JSONL file. Raises ValueError."""
    if not isinstance(entry, dict):
        raise ValueError("it is no object")
    own = {name: value for name, value in entry.items() if name != "id" and not _nothing(value)}
    ident = entry.get("id")
    if ident is not None and (not isinstance(ident, str | int) or isinstance(ident, bool)):
        raise ValueError(f'"id" must be a text, not {json.dumps(ident)[:40]}')
    if not own and not named:
        raise ValueError("it gives no input")
    if ident is None:
        texts = [value for value in own.values() if isinstance(value, str)]
        ident = own["image"] if own.get("image") in texts else next(filter(_names, texts), number)
    return Query(str(ident), {**named, **own}, folder=source.parent, place=f"{source}:{number}")


def _nothing(value: Any) -> bool:
    """Whether it says nothing: null, an empty text, or a list of nothing."""
    return value is None or (isinstance(value, str | list) and not value)


def _names(value: str) -> bool:
    """Whether a line may be called like this value: a picture's path."""
    return value.lower().endswith(SUFFIXES)


def as_picture(value: Any, query: Query) -> Picture | None:
    """The picture that a value names or is; None where it is no picture. Raises ValueError for one that is described
    wrongly."""
    if isinstance(value, Picture):
        return value
    if isinstance(value, str | Path):
        path = query.folder / value
        return picture(path) if _is_file(path) else None
    if isinstance(value, Mapping) and "picture" in value:
        if unknown := [name for name in value if name not in ("picture", "boxes", "labels")]:
            raise ValueError(f'"{unknown[0]}" is not known beside "picture"; there are boxes and labels')
        if value.get("labels") is not None and value.get("boxes") is None:
            raise ValueError("labels are given without boxes; give each label a box, or leave the labels out")
        whole = as_picture(value["picture"], query)
        if whole is None:
            raise ValueError(f"{value['picture']}: no such file")
        return Picture(whole.key, whole.load, value.get("boxes"), value.get("labels"))
    if hasattr(value, "convert"):  # an opened image
        return Picture(query.name, lambda: value.convert("RGB"))
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for a name, or it holds a NUL
        return False
