"""Shared by the commands that query a finished run: print the answers, or write them line by line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MmgenError
from ..progress import tell

if TYPE_CHECKING:
    from ..inference.answers import Answer
    from ..inference.predictor import Predictor
    from ..inference.query import Query

MOST_REMARKS = 6  # that are printed beside a file of answers, which has them all


def answer_all(
    queries: Sequence[Query],
    begin: Callable[[int], tuple[Predictor, Iterable[Answer]]],
    verbs: tuple[str, str],
    show: Callable[[Mapping[str, Any], str], None],
    out: Path | None,
) -> list[Answer]:
    """Write the answer to each query as one JSON line to the file `out`, or else call `show`. Print the remarks; with
    a file, the first of them.

    begin  batch size -> the predictor, and an iterator of its answers
    verbs  what the step does, and has done: ("writing", "written")
    show   prints an answer: its line of JSON, and the kind of the step's answers

    Raises MmgenError if the only query, or every query, cannot be read."""
    from ..inference.answers import answers_file
    from ..progress import Bars, Progress

    answers, remarks, progress = [], 0, Bars() if out else Progress()
    with answers_file(out) if out else contextlib.nullcontext() as add:
        predictor, results = begin(16 if out else 1)
        with progress.task(f"{predictor.step}: {verbs[0]}", len(queries), "examples") as advance:
            for query, answer in zip(queries, results, strict=True):
                if answer.error and len(queries) == 1 and not out:
                    raise MmgenError(answer.error)
                answers.append(answer)
                if add:
                    add(answer.as_json())
                else:
                    show(answer.as_json(), predictor.kind)
                for remark in answer.remarks:
                    remarks += 1
                    if not out or remarks <= MOST_REMARKS:
                        tell(f"{query.where}: {remark}", err=True)
                advance()
    if out:
        if remarks > MOST_REMARKS:
            tell(f'and {remarks - MOST_REMARKS} more; {out} has all of them as "remarks"', err=True)
        tell(f"{out}: {len(queries)} line{'s' * (len(queries) != 1)}")
    tell(f"{verbs[1]} by step '{predictor.step}', which reads {predictor.names.reads}", err=True)
    if all(answer.error for answer in answers):
        raise MmgenError("could not read any of the input")
    return answers
