"""What all three probes do alike: go through the steps, and say in one line what a step cannot give."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mmgen.errors import DataError, UnavailableError
from mmgen.parts import ProbeInput, TrainedStep

Found = TypeVar("Found")


def over_steps(subject: ProbeInput, look: Callable[[TrainedStep, Any], Found]) -> tuple[dict[str, Found], list[str]]:
    """What `look(step, its model)` finds, by step; and a note for each step that has nothing to be found.

    Raises DataError without examples, and UnavailableError when no step gives anything.
    """
    if not subject.examples:
        raise DataError("there are no examples to look at")
    found, notes = {}, []
    for step in subject.steps:
        try:
            found[step.name] = look(step, step.load())
        except (UnavailableError, NotImplementedError) as error:
            notes.append(f"{step.name}: {str(error) or 'its model does not tell what is needed'}")
    if not found:
        raise UnavailableError("; ".join(notes) or "there are no steps to look into")
    return found, notes


def pictured(model: Any, example: Any, inputs: Any) -> tuple[str | None, str | None]:
    """Names of the first input with boxes and of the first without, among these and of what the example has."""
    found = readable(model, example, inputs)
    boxed = {name: bool(model.embedders[name].describe(example).get("boxes")) for name in found}
    return (
        next((name for name, has in boxed.items() if has), None),
        next((name for name, has in boxed.items() if not has), None),
    )


def readable(model: Any, example: Any, inputs: Any) -> tuple[str, ...]:
    """Those of these inputs that the example has, in the model's order: an objective may make others while it learns,
    as matching makes a second caption."""
    found = []
    for name in model.inputs:
        if name in inputs:
            with contextlib.suppress(DataError):
                model.embedders[name].describe(example)
                found.append(name)
    return tuple(found)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
