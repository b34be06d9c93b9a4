"""Predictions of a step that are no texts: the lines of `predictions.jsonl`."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..errors import RunError
from ..tensors import Prediction
from .generations import text_of

FILE = "predictions.jsonl"
LINE = TypeAdapter(Prediction)


def read(folder: Path) -> list[Prediction]:
    """The prediction of every example. Raises RunError for a file that is missing or damaged."""
    path = folder / FILE
    text = text_of(path)
    found = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        try:
            found.append(LINE.validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            what = ".".join(map(str, (*first["loc"], first["msg"])))
            raise RunError(f"{path}:{number}: damaged: {what}; delete the file and run again") from None
    return found
