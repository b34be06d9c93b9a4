"""Where answers go, for all commands that query a run: to the terminal, a file line by line, or the file of a shard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MmgenError
from ..progress import tell

if TYPE_CHECKING:
    from ..decoding import DecodingConfig
    from ..features.shards import Shard
    from ..inference.answers import Answer
    from ..inference.predictor import Predictor
    from ..inference.query import Query

MOST_REMARKS = 6  # that are printed beside a file of answers, which has them all


@dataclass(frozen=True)
class Output:
    """Where answers go.

    show   prints an answer: its line of JSON, and the kind of the step's answers
    out    the file to which they are written instead
    shard  the shard of the queries whose answers are written
    """

    show: Callable[[Mapping[str, Any], str], None]
    out: Path | None = None
    shard: Shard | None = None


def choose_output(show: Callable[[Mapping[str, Any], str], None], out: Path | None, shard: str | None) -> Output:
    """The output by a command's options. Raises MmgenError."""
    from ..features.shards import Shard

    if shard and out is None:
        raise MmgenError(f"--shard {shard}: requires --out FILE")
    return Output(show, out, Shard.parse(shard) if shard else None)


def answer_all(
    queries: Sequence[Query],
    begin: Callable[[], tuple[Predictor, DecodingConfig | None]],
    verbs: tuple[str, str],
    output: Output,
    seed: int | None = None,
) -> list[Answer]:
    """Write the answer to each query as one JSON line to a file, or else print it. Print the remarks (with a file, the
    first of them), how many queries could not be read, the step, its limits, and the seed of texts that are sampled.
    Returns the answers; none for a shard.

    begin  loads the predictor, and chooses the decoding
    verbs  what the step does, and has done: ("writing", "written")
    seed   of texts that are sampled

    Raises MmgenError if the only query, or every query, cannot be read."""
    from ..inference.answers import answers_file
    from ..progress import Bars, Progress

    out = output.out
    if out and output.shard:
        _answer_shard(queries, begin, verbs, (out, output.shard), seed)
        return []
    answers, remarks, progress = [], 0, Bars() if out else Progress()
    with answers_file(out) if out else contextlib.nullcontext() as file:
        predictor, options = begin()
        results = predictor.answers(queries, options, 16 if out else 1, seed)
        with progress.task(f"{predictor.step}: {verbs[0]}", len(queries), "examples") as advance:
            for query, answer in zip(queries, results, strict=True):
                if answer.error and len(queries) == 1 and not out:
                    raise MmgenError(answer.error)
                answers.append(answer)
                if file:
                    file.add(answer.as_json())
                else:
                    output.show(answer.as_json(), predictor.kind)
                for remark in answer.remarks:
                    remarks += 1
                    if not out or remarks <= MOST_REMARKS:
                        tell(f"{query.where}: {remark}", err=True)
                advance()
    if out:
        if remarks > MOST_REMARKS:
            tell(f'and {remarks - MOST_REMARKS} more; {out} has all of them as "remarks"', err=True)
        tell(f"{out}: {len(queries)} line{'s' * (len(queries) != 1)}")
    _tell_failures(sum(bool(answer.error) for answer in answers), len(queries), out)
    _tell_step(predictor, verbs[1])
    if seeds := [answer.seed for answer in answers if answer.seed is not None]:
        tell(f"sampled with seed {seeds[0]}; --seed {seeds[0]} writes the same texts again", err=True)
    if all(answer.error for answer in answers):
        raise MmgenError("could not read any of the input")
    return answers


def _tell_failures(failed: int, total: int, out: Path | None) -> None:
    """Say how many of several queries have no answer, and where the reasons are."""
    if failed and (out or total > 1):
        reasons = f'{out} has the reasons as "error"' if out else "the reasons are above"
        tell(f"{failed} of {total} could not be answered; {reasons}", err=True)


def _tell_step(predictor: Predictor, done: str) -> None:
    """Say which step has answered, why this one, and what it does not know."""
    chosen = f"{predictor.chosen}; it" if predictor.chosen else "which"
    tell(f"{done} by step '{predictor.step}', {chosen} reads {predictor.names.reads}", err=True)
    if predictor.limits:
        tell(predictor.limits, err=True)


def _answer_shard(
    queries: Sequence[Query],
    begin: Callable[[], tuple[Predictor, DecodingConfig | None]],
    verbs: tuple[str, str],
    place: tuple[Path, Shard],
    seed: int | None,
) -> None:
    """Write the answers of one shard. `place`: the file of all answers, and the shard."""
    from ..inference.shard_answers import ShardOf, write_shard
    from ..progress import Bars

    (out, shard), (predictor, options) = place, begin()
    part = ShardOf.of(shard, (query.id for query in queries))
    total = len(part.numbers)
    with Bars().task(f"{predictor.step}: {verbs[0]}, shard {shard}", total, "examples") as advance:
        path, failed = write_shard(predictor, queries, options, out, part, advance, seed)
    tell(f"{path}: {total} of {len(queries)} queries; `mmgen merge {out}` joins all shards")
    _tell_failures(failed, total, path)
    _tell_step(predictor, verbs[1])
