"""The lines of a step's `generations.jsonl` (texts) and `predictions.jsonl`: written and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from ..errors import RunError
from ..examples import LOG_PROBABILITY, Generation, Prediction
from ..recipe.messages import mistake_text

Value = TypeVar("Value")
GENERATIONS, PREDICTIONS = "generations.jsonl", "predictions.jsonl"
TEXTS = TypeAdapter(Annotated[list[Generation], Field(min_length=1)])  # a line of generations.jsonl
PREDICTION = TypeAdapter(Prediction)  # a line of predictions.jsonl


def as_line(texts: Sequence[Generation]) -> str:
    """The texts of one example as a line. "score_kind" is written only if it is not a log-probability, "passes" and
    "prompt" only if there are any."""
    return json.dumps([_as_json(text) for text in texts], ensure_ascii=False)


def _as_json(text: Generation) -> dict[str, Any]:
    values = asdict(text)
    if text.score_kind == LOG_PROBABILITY:
        del values["score_kind"]
    return {name: value for name, value in values.items() if value or name not in ("passes", "prompt")}


def read(folder: Path) -> list[list[Generation]]:
    """The texts of each example of a step, best first. Raises RunError for a missing or damaged file."""
    return _read_lines(TEXTS, folder / GENERATIONS)


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
    lines = _read(path).removesuffix("\n").split("\n")  # a text may contain other line separators
    return [_parse(of, line, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RunError(f"{path}: missing; has this step been run?") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: damaged: {error}; delete the file and run again") from None


def _parse(of: TypeAdapter[Value], text: str, place: str) -> Value:
    try:
        return of.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        reason = ": ".join(filter(None, (".".join(map(str, first["loc"])), mistake_text(first))))
        raise RunError(f"{place}: damaged: {reason}; delete the file and run again") from None
