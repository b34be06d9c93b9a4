"""The lines of `generations.jsonl`, a step's texts: made, read, the best of each example, whether all are there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..errors import RunError
from ..recipe.messages import mistake_text
from ..tensors import LOG_PROBABILITY, Generation

Value = TypeVar("Value")
TEXTS = TypeAdapter(list[Generation])  # a line of generations.jsonl


def as_line(texts: Sequence[Generation]) -> str:
    """The texts of one example as a line. "score_kind" is written only if it is not a log-probability, "passes" and
    "prompt" only if there are any."""
    return json.dumps([_as_json(text) for text in texts], ensure_ascii=False)


def _as_json(text: Generation) -> dict[str, Any]:
    values = asdict(text)
    if text.score_kind == LOG_PROBABILITY:
        del values["score_kind"]
    for name in ("passes", "prompt"):
        if not values[name]:
            del values[name]
    return values


def is_complete(folder: Path) -> bool:
    """Whether all texts of a folder are written."""
    return (folder / "generations.jsonl").exists()


def read(folder: Path) -> list[list[Generation]]:
    """The texts of each example, best first. Raises RunError for a missing or damaged file."""
    path = folder / "generations.jsonl"
    text = text_of(path)
    if not text:
        raise RunError(f"{path}: damaged: the file is empty; delete the file and run again")
    lines = text.removesuffix("\n").split("\n")  # a text may contain other line separators
    return [_parse_texts(line, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def parse(of: TypeAdapter[Value], path: Path) -> Value:
    """The content of a JSON file of a step or run. Raises RunError if it is missing or damaged."""
    return _parse_line(of, text_of(path), str(path))


def text_of(path: Path) -> str:
    """The content of a step's JSONL file. Raises RunError if the file is missing or cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RunError(f"{path}: missing; has this step been run?") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise RunError(f"{path}: damaged: {reason}; delete the file and run again") from None


def best(folder: Path) -> dict[str, Generation]:
    """Example id -> the best text of the step for that example."""
    return {texts[0].id: texts[0] for texts in read(folder)}


def _parse_line(of: TypeAdapter[Value], line: str, place: str) -> Value:
    try:
        return of.validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise RunError(f"{place}: damaged: {key}: {mistake_text(first)}; delete the file and run again") from None


def _parse_texts(line: str, place: str) -> list[Generation]:
    texts = _parse_line(TEXTS, line, place)
    if not texts:
        raise RunError(f"{place}: damaged: the line has no text; delete the file and run again")
    return texts
