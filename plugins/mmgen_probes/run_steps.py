"""Shared by all probes: run over steps with notes on failures, work in batches, choose inputs, write JSON."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mmgen.errors import DataError, UnavailableError
from mmgen.oom import ADVICE_SMALLER, OomRetry
from mmgen.parts import ProbeInput, TrainedStep
from mmgen.progress import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")
BATCH = 32


def over_steps(subject: ProbeInput, look: Callable[[TrainedStep, Any], Result]) -> tuple[dict[str, Result], list[str]]:
    """Results of `look(step, its model)` by step, and a note for each step without a result.

    Raises DataError without examples, and UnavailableError if no step has a result.
    """
    if not subject.examples:
        raise DataError("no examples to probe; a probe needs at least one")
    results, notes = {}, []
    for step in subject.steps:
        try:
            results[step.name] = look(step, step.load())
        except (UnavailableError, NotImplementedError) as error:
            notes.append(f"{step.name}: {str(error) or 'its model does not support this probe'}")
    if not results:
        raise UnavailableError("; ".join(notes) or "no steps to probe")
    return results, notes


def in_batches(
    name: str, items: Sequence[Item], work: Callable[[Sequence[Item]], Sequence[Result]], progress: Progress
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result of `work`, which gets as many items at a time as fit into memory."""
    halving = OomRetry(name, ADVICE_SMALLER, say=progress.say)
    with progress.task(name, len(items), "examples") as advance:
        for first in range(0, len(items), BATCH):
            for part, results in halving.over(items[first : first + BATCH], work):
                yield from zip(part, results, strict=True)
                advance(len(part))


def picture_and_text(model: Any, example: Any, inputs: Any) -> tuple[str | None, str | None]:
    """What a probe reads of an example: names of the first of `inputs` with boxes, and of the first without."""
    names = readable(model, example, inputs)
    boxed = {name: bool(model.embedders[name].describe(example).get("boxes")) for name in names}
    return (
        next((name for name, has_boxes in boxed.items() if has_boxes), None),
        next((name for name, has_boxes in boxed.items() if not has_boxes), None),
    )


def readable(model: Any, example: Any, inputs: Any) -> tuple[str, ...]:
    """The `inputs` that the example has, in the model's order. Others may be made by an objective in training, such as
    a second caption for matching."""
    names = []
    for name in model.inputs:
        if name in inputs:
            with contextlib.suppress(DataError):
                model.embedders[name].describe(example)
                names.append(name)
    return tuple(names)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
