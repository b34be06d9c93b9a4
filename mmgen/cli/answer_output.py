"""Where answers go, for all commands that query a run: to the terminal, or a file line by line, also of one shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MmgenError, RunError
from ..progress import tell

if TYPE_CHECKING:
    from ..decoding import DecodingConfig
    from ..features.extract import Shard
    from ..inference.answers import Answer, AnswersFile
    from ..inference.predictor import Predictor
    from ..inference.query import Query

MOST_REMARKS = 6  # that are printed beside a file of answers, which has them all


@dataclass(frozen=True)
class Output:
    """Where answers go.

    show   prints an answer: its line of JSON, and the kind of the step's answers
    out    the file to which they are written instead
    shard  the shard of the queries whose answers are written: every N-th
    """

    show: Callable[[Mapping[str, Any], str], None]
    out: Path | None = None
    shard: Shard | None = None

    @classmethod
    def of(cls, show: Callable[[Mapping[str, Any], str], None], out: Path | None, shard: str | None) -> Output:
        """The output by a command's options. Raises MmgenError."""
        from ..features.extract import Shard

        if shard and out is None:
            raise MmgenError(f"--shard {shard}: requires --out FILE")
        return cls(show, out, Shard.parse(shard) if shard else None)


def answer_all(
    predictor: Predictor,
    queries: Sequence[Query],
    output: Output,
    options: DecodingConfig | None = None,
    seed: int | None = None,
) -> list[Answer]:
    """Write the answer to each query as one JSON line to a file, or else print it. Print the remarks (with a file, the
    first of them), how many queries could not be read, the step, its limits, and the seed of texts that are sampled.
    Returns the answers; a file has also those of an earlier attempt that was stopped.

    Raises MmgenError if the only query, or every query, cannot be read."""
    from ..inference.answers import AnswersFile, lines_of, shard_path

    path, file = output.out, None
    if path and output.shard:
        queries = queries[output.shard.number - 1 :: output.shard.count]
        path = shard_path(path, output.shard.number, output.shard.count)
    if path:
        file = AnswersFile(path)
        queries = _waiting(file, queries)
    try:
        answers = _answers(predictor, queries, (output, file), options, seed)
        if file:
            file.finish()
    except BaseException as error:
        if file and file.done:
            note = f"partial answers ({len(file.done)}) are in {file.partial}; re-running the command continues"
            error.add_note(note)
        elif file:
            file.partial.unlink(missing_ok=True)
        raise
    lines = lines_of(path) if path else [answer.as_json() for answer in answers]
    if path:
        merge = f"; `mmgen merge {output.out}` joins all shards" if output.shard else ""
        tell(f"{path}: {len(lines)} line{'s' * (len(lines) != 1)}{merge}")
    failed = sum("error" in line for line in lines)
    if failed and (path or len(lines) > 1):
        reasons = f'{path} has the reasons as "error"' if path else "the reasons are above"
        tell(f"{failed} of {len(lines)} could not be answered; {reasons}", err=True)
    _tell_step(predictor)
    if seeds := [answer.seed for answer in answers if answer.seed is not None]:
        tell(f"sampled with seed {seeds[0]}; --seed {seeds[0]} writes the same texts again", err=True)
    if lines and failed == len(lines):
        raise MmgenError("could not read any of the input")
    return answers


def _waiting(file: AnswersFile, queries: Sequence[Query]) -> list[Query]:
    """The queries without an answer in the file. Raises RunError for a file of answers to others."""
    if others := sorted(file.done - {query.id for query in queries}):
        raise RunError(f"{file.partial}: has answers to other queries, such as {others[0]!r:.60}; delete it")
    if file.done:
        tell(f"{file.partial}: {len(file.done)} answers are kept; to start over, delete this file", err=True)
    return [query for query in queries if query.id not in file.done]


def _answers(
    predictor: Predictor,
    queries: Sequence[Query],
    places: tuple[Output, AnswersFile | None],
    options: DecodingConfig | None,
    seed: int | None,
) -> list[Answer]:
    """The answers, each written or shown at once, with their remarks."""
    from ..progress import Bars, Progress

    (output, file), answers, remarks = places, list["Answer"](), 0
    doing = f"{predictor.step}: {'writing' if predictor.kind == 'text' else 'predicting'}"
    with (Bars() if file else Progress()).task(doing, len(queries), "examples") as advance:
        for query, answer in zip(queries, predictor.answers(queries, options, seed=seed), strict=True):
            if answer.error and len(queries) == 1 and not file:
                raise MmgenError(answer.error)
            answers.append(answer)
            if file:
                file.add(answer.as_json())
            else:
                output.show(answer.as_json(), predictor.kind)
            for remark in answer.remarks:
                remarks += 1
                if not file or remarks <= MOST_REMARKS:
                    tell(f"{query.where}: {remark}", err=True)
            advance()
    if file and remarks > MOST_REMARKS:
        tell(f'and {remarks - MOST_REMARKS} more; {file.path} has all of them as "remarks"', err=True)
    return answers


def _tell_step(predictor: Predictor) -> None:
    """Say which step has answered, and why this one."""
    chosen = f"{predictor.chosen}; it" if predictor.chosen else "which"
    done = "written" if predictor.kind == "text" else "predicted"
    tell(f"{done} by step '{predictor.step}', {chosen} reads {predictor.names.reads}", err=True)
