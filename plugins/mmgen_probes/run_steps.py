"""Shared by all probes: run over steps with notes on failures, choose the inputs for picture and text, write JSON."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mmgen.errors import DataError, UnavailableError
from mmgen.parts import ProbeInput, TrainedStep

Result = TypeVar("Result")


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


def picture_and_text(model: Any, example: Any, inputs: Any) -> tuple[str | None, str | None]:
    """Names of the first input with boxes and of the first without, among the `inputs` that the example has."""
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
