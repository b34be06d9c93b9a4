"""The answers of one shard of many queries, and the file of all answers merged from the shards.

The first line of a shard's file is its header: the queries, the model and the settings that decide the answers. Every
other line has the number of its query.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..decoding import DecodingConfig
from ..errors import DataError, RunError
from ..features.shards import ShardOf, shard_files
from ..reading.text import join_names
from ..storage.weights import module_checksum
from .answers import answers_file
from .predictor import Predictor
from .query import Query
from .query_digest import digest_features, digest_files, digest_queries, extractor_settings

NUMBER = "number"  # of a query among all, in the lines of a shard
LOCAL = ("shard", "files")  # keys of the header that differ between shards of one file
BATCH = 16
START_OVER = "delete this file and run the shard again"


def write_shard(
    predictor: Predictor,
    queries: Sequence[Query],
    options: DecodingConfig | None,
    path: Path,
    part: ShardOf,
    advance: Callable[[int], None],
    seed: int | None = None,
) -> tuple[Path, int]:
    """Write the answers of a part of `queries` into the file of its shard beside `path`. Returns that file, and how
    many of its queries could not be answered. A finished file is left as it is; a stopped one is continued. `advance`:
    called with the number of queries that are answered. `seed`: of a decoding that samples. Raises RunError for a file
    that belongs to other queries, settings or another model, and DataError for a damaged file, and for a missing
    seed."""
    shard, numbers = part.shard, part.numbers
    if options is not None and options.samples and seed is None:
        raise DataError(f"--shard {shard}: all shards must sample with the same seed; give --seed")
    target, header = shard.path(path), header_of(predictor, queries, options, part) | {"seed": seed}
    if target.exists():
        _check_header(target, next(iter(_read_lines(target)), {}), header)
        advance(len(numbers))
        return target, sum("error" in line for line in _read_lines(target))

    def check_earlier(partial: Path, lines: Sequence[Mapping[str, Any]]) -> None:
        _check_header(partial, lines[0], header)
        _check_answers(partial, lines[1:], queries, part)

    with answers_file(target, resume=True, check=check_earlier) as file:
        if not file.earlier:
            file.add(header)
        done = {line[NUMBER] for line in file.earlier[1:]}
        numbers = [number for number in numbers if number not in done]
        advance(len(done))
        failed = sum("error" in line for line in file.earlier)
        answers = predictor.answers([queries[number] for number in numbers], options, BATCH, seed)
        for number, answer in zip(numbers, answers, strict=True):
            file.add({NUMBER: number, **answer.as_json()})
            failed += bool(answer.error)
            advance(1)
    return target, failed


def header_of(
    predictor: Predictor, queries: Sequence[Query], options: DecodingConfig | None, part: ShardOf
) -> dict[str, Any]:
    """The first line of a shard's file: the shard, and all that decides the answers. Sizes of pictures and of feature
    stores are compared between all shards. Their times, which a copy on another machine may change, are compared only
    when a shard runs again ("files")."""
    return {
        "shard": str(part.shard),
        "queries": len(queries),
        "inputs": digest_queries(predictor, queries),
        "files": digest_files(predictor, [queries[number] for number in part.numbers]),
        "features": digest_features(predictor),
        "extractors": extractor_settings(predictor),
        "step": predictor.step,
        "weights": module_checksum(predictor.model),
        "decoding": None if options is None else json.loads(options.model_dump_json()),
    }


def _check_header(path: Path, header: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raises RunError if a file was begun by another command, or with other settings."""
    if "shard" not in header:
        raise RunError(
            f"{path}:1: is not the answers of shard {expected['shard']}; delete this file, or choose another --out"
        )
    if changed := [name for name in expected if header.get(name) != expected[name]]:
        raise RunError(f"{path}: was begun with other {' and '.join(changed)}; delete it, or choose another --out")


def _check_answers(path: Path, lines: Sequence[Mapping[str, Any]], queries: Sequence[Query], part: ShardOf) -> None:
    """Raises DataError for a line that answers no query of the shard, or a query that an earlier line answers."""
    numbers, places = set(part.numbers), dict[int, int]()
    for place, line in enumerate(lines, 2):
        number = line.get(NUMBER)
        if type(number) is not int or number not in numbers or line.get("id") != queries[number].id:
            raise DataError(f"{path}:{place}: answers no query of shard {part.shard}; {START_OVER}")
        if (place_before := places.setdefault(number, place)) != place:
            raise DataError(
                f"{path}:{place}: query {number} is answered twice, also in line {place_before}; {START_OVER}"
            )


def merged(path: Path) -> Iterator[dict[str, Any]]:
    """The answers of all shards of `path`, in the order of the queries. Raises DataError if a shard is missing or
    damaged, if the shards do not belong together, and for queries without an answer, or with two."""
    files = shard_files(path)
    answers: dict[int, dict[str, Any]] = {}
    first: dict[str, Any] = {}
    for shard, file in files.items():
        lines = _read_lines(file)
        header = next(lines, {})
        first = first or header
        count = header.get("queries")
        if header.get("shard") != str(shard) or type(count) is not int or count < 0:
            raise DataError(f"{file}:1: is not the answers of shard {shard}; run again with --shard {shard}")
        if changed := [
            name for name in {**first, **header} if name not in LOCAL and not _have_equal_values(first, header, name)
        ]:
            changes = " and ".join(join_names([name]) for name in changed)
            raise DataError(f"{file}: has other {changes} than {next(iter(files.values()))}; run one of them again")
        for place, line in enumerate(lines, 2):
            number = line.pop(NUMBER, None)
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < first["queries"]:
                raise DataError(f"{file}:{place}: has no number of a query; run again with --shard {shard}")
            if number in answers:
                raise DataError(
                    f"{file}:{place}: query {number} ({line.get('id')!r:.60}) is answered twice; run it again"
                )
            answers[number] = line
    if lacking := first["queries"] - len(answers):
        missing = (number for number in range(first["queries"]) if number not in answers)
        names = ", ".join(map(str, islice(missing, 10))) + (", ..." if lacking > 10 else "")
        raise DataError(f"{path}: {lacking} of {first['queries']} queries have no answer: number {names}")
    return (answers[number] for number in range(first["queries"]))


def _have_equal_values(first: Mapping[str, Any], second: Mapping[str, Any], name: str) -> bool:
    return name in first and name in second and bool(first[name] == second[name])


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a shard. Raises DataError for a file that cannot be read, and a line that is no JSON object."""
    try:
        file = path.open("rb")  # json decodes it; other bytes are not JSON either
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    with file:
        for place, text in enumerate(file, 1):
            line: object = None
            with contextlib.suppress(ValueError, RecursionError):
                line = json.loads(text)
            if not isinstance(line, dict):
                raise DataError(f"{path}:{place}: not a JSON object; delete the file and run its shard again")
            yield line
