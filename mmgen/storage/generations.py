"""The lines of a step's `generations.jsonl` (texts), `likelihoods.jsonl` (of references) and `predictions.jsonl`:
written and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from ..errors import RunError
from ..examples import Generation, Likelihood, Prediction
from ..recipe.messages import mistake_text

Value = TypeVar("Value")
GENERATIONS, LIKELIHOODS, PREDICTIONS = "generations.jsonl", "likelihoods.jsonl", "predictions.jsonl"
TEXTS = TypeAdapter(Annotated[list[Generation], Field(min_length=1)])  # a line of generations.jsonl
OF_REFERENCES = TypeAdapter(Annotated[list[Likelihood], Field(min_length=1)])  # a line of likelihoods.jsonl
PREDICTION = TypeAdapter(Prediction)  # a line of predictions.jsonl


def as_line(answer: Prediction | Sequence[Generation]) -> str:
    """The texts of one example, the likelihoods of its references, or its prediction; without default values."""
    adapter: TypeAdapter[Any] = PREDICTION
    if not isinstance(answer, Prediction):
        adapter, answer = (OF_REFERENCES if isinstance(answer[0], Likelihood) else TEXTS), [*answer]
    return json.dumps(adapter.dump_python(answer, exclude_defaults=True), ensure_ascii=False)


def read(folder: Path) -> list[list[Generation]]:
    """The texts of each example of a step, best first. Raises RunError for a missing or damaged file."""
    return _read_lines(TEXTS, folder / GENERATIONS)


def read_likelihoods(folder: Path) -> list[list[Likelihood]]:
    """The likelihoods of each example's references. Raises RunError for a missing or damaged file."""
    return _read_lines(OF_REFERENCES, folder / LIKELIHOODS)


def best(folder: Path) -> dict[str, Generation]:
    """Example id -> the best text of the step for that example."""
    return {texts[0].id: texts[0] for texts in read(folder)}


def read_predictions(folder: Path) -> list[Prediction]:
    """The prediction of each example of a step. Raises RunError for a missing or damaged file."""
    return _read_lines(PREDICTION, folder / PREDICTIONS)


def parse(of: TypeAdapter[Value], path: Path) -> Value:
    """The content of a JSON file of a step or run. Raises RunError if it is missing or damaged."""
    return _parse(of, _read(path), str(path))


def _read_lines(of: TypeAdapter[Value], path: Path) -> list[Value]:
    lines = _read(path).removesuffix(b"\n").split(b"\n")  # a text may contain other line separators
    return [_parse(of, line, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _read(path: Path) -> bytes:
    if not path.exists():
        raise RunError(f"{path}: missing; has this step been run?")
    return path.read_bytes()


def _parse(of: TypeAdapter[Value], content: bytes, place: str) -> Value:
    try:
        return of.validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "line"
        raise RunError(f"{place}: damaged: {key}: {mistake_text(first)}; delete the file and run again") from None
