"""Digests of what decides the answers to queries: their values, the files that they name, feature stores, extractors.

The order of keys, the place of the file of queries and the number of a shard do not change a digest.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..configs import FeaturesConfig
from ..errors import DataError
from ..features.multi_file import files_of
from ..tensors import All
from .predictor import Predictor
from .query import Query

ENDS = 1 << 16  # bytes at each end of a feature store that are compared


def digest_queries(predictor: Predictor, queries: Iterable[Query]) -> str:
    """The digest of ids and all values of queries, and of the sizes of their pictures' files. Raises DataError for a
    value that cannot be compared."""
    fields, sizes = _picture_fields(predictor), dict[Path, int | None]()
    digest = blake2b(digest_size=16)
    for query in queries:
        paths = _paths_of(query, fields)
        for path in paths:
            if path not in sizes:
                state = _state_of(path)
                sizes[path] = state and state[0]
        problem = query.problem.removeprefix(query.place)  # the place has the path of the file of queries
        values = [query.id, query.inputs, query.picture, problem, [sizes[path] for path in paths]]
        digest.update(_canonical_json(values, query).encode() + b"\n")
    return digest.hexdigest()


def digest_files(predictor: Predictor, queries: Iterable[Query]) -> str:
    """The digest of sizes and times of change of the queries' pictures, and of the feature stores. It differs between
    copies of the files."""
    fields = _picture_fields(predictor)
    states = [_state_of(path) for query in queries for path in _paths_of(query, fields)]
    stores = [_state_of(path) for paths in _store_files(predictor).values() for path in paths]
    return _digest_json([states, stores])


def digest_features(predictor: Predictor) -> str:
    """The digest of names and sizes of the feature stores' files, and of the bytes at both ends of each: keys in
    queries, and remarks, refer to them. Copies have the same digest. Raises DataError for a file that cannot be
    read."""
    return _digest_json({name: [_ends_of(path) for path in paths] for name, paths in _store_files(predictor).items()})


def extractor_settings(predictor: Predictor) -> dict[str, Any]:
    """Input of features -> the settings of its extractor; `--set` may override them."""
    return {
        name: None if config.extractor is None else config.extractor.model_dump(mode="json")
        for name, config in predictor.names.inputs.items()
        if isinstance(config, FeaturesConfig)
    }


def _digest_json(value: Any) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()


def _canonical_json(value: Any, query: Query) -> str:
    """The value as JSON with sorted keys. Raises DataError."""
    try:
        return json.dumps(value, sort_keys=True, default=_as_json)
    except TypeError:
        raise DataError(f"{query.where}: with --shard, values must be JSON values, paths or bytes") from None
    except RecursionError:
        raise DataError(f"{query.where}: a value is nested too deeply; remove the line") from None


def _as_json(value: Any) -> Any:
    """A value of a query that JSON does not have. Raises TypeError."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, All):
        return {"all": list(value.values)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": blake2b(value, digest_size=16).hexdigest()}
    raise TypeError(value)


def _picture_fields(predictor: Predictor) -> Sequence[str]:
    """The names under which queries give pictures and files: of inputs, and of fields that the inputs read."""
    return sorted(name for name, takes in predictor.names.takes.items() if takes in ("picture", "file"))


def _paths_of(query: Query, fields: Sequence[str]) -> list[Path]:
    """The paths that may be pictures or files of a query."""
    values = [query.picture, *(query.inputs.get(field) for field in fields)]
    return [(query.folder or Path()) / text for value in values for text in _strings_in(value)]


def _strings_in(value: Any) -> Iterator[str | Path]:
    """The paths and strings in a picture's value: a path, several together, or "picture" with boxes."""
    remaining = [value]
    while remaining:
        element = remaining.pop()
        if isinstance(element, str | Path):
            yield element
        elif isinstance(element, All):
            remaining += element.values
        elif isinstance(element, list | tuple):
            remaining += element
        elif isinstance(element, Mapping):
            remaining.append(element.get("picture"))


def _store_files(predictor: Predictor) -> dict[str, list[Path]]:
    """Input -> the files of its feature store; without files if there is no store."""
    files = {}
    for name, embedder in predictor.features.embedders.items():
        path = embedder.reader.path
        try:
            files[name] = [] if path is None else files_of(path) or [path]
        except DataError:  # an empty folder
            files[name] = []
    return files


def _ends_of(path: Path) -> tuple[str, int, str] | None:
    """The name, the size and a digest of the first and last bytes of a file; None if there is no regular file."""
    if (state := _state_of(path)) is None:
        return None
    try:
        with path.open("rb") as file:
            first = file.read(ENDS)
            file.seek(max(0, state[0] - ENDS))
            return path.name, state[0], blake2b(first + file.read(ENDS), digest_size=16).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _state_of(path: Path) -> tuple[int, int] | None:
    """The size and the time of change of a file; None if there is no regular file, such as for a key."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # also a name that is too long, or contains a NUL
        return None
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None
