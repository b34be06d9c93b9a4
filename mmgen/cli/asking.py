"""What commands share that ask a finished run: answers of every query, shown or written line by line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MmgenError
from ..progress import tell

if TYPE_CHECKING:
    from ..inference.load import Run
    from ..inference.predict import Query

Answers = Callable[[int], "tuple[Run, Iterable[tuple[Query, Any]]]"]


def answer_all(
    queries: Sequence[Query],
    answers: Answers,
    verbs: tuple[str, str],
    show: Callable[[Mapping[str, Any]], None],
    out: Path | None,
) -> list[str]:
    """A line of JSON for every query, into the file `out` or else to `show`; then what a person should know of it. The
    first text of every answer that has one.

    answers  loads a step, and begins to answer so many queries at a time
    verbs    what the step does, and has done: ("writing", "written")

    Raises MmgenError where the only query cannot be read, or none of them."""
    from ..inference import predict
    from ..progress import Bars, Progress

    read, texts, progress = 0, [], Bars() if out else Progress()
    with predict.answers_file(out) if out else contextlib.nullcontext(show) as add:
        loaded, found = answers(16 if out else 1)
        with progress.task(f"{loaded.step}: {verbs[0]}", len(queries), "examples") as advance:
            for query, outcome in found:
                line = predict.as_json(query, outcome)
                if "error" in line and len(queries) == 1 and not out:
                    raise MmgenError(line["error"])
                read += "error" not in line
                texts += [each["text"] for each in line.get("texts", [])[:1]]
                add(line)
                advance()
    if out:
        tell(f"{out}: {len(queries)} line{'s' * (len(queries) != 1)}")
    inputs = " and ".join(loaded.recipe.steps[loaded.step].inputs)
    tell(f"{verbs[1]} by the step '{loaded.step}', which reads {inputs}", err=True)
    if not read:
        raise MmgenError("nothing of it could be read")
    return texts
