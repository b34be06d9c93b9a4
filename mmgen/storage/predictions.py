"""Predictions of a step other than texts: the lines of `predictions.jsonl`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ..configs import Gives
from ..errors import RunError
from ..examples import Prediction
from .generations import text_of

FILE = "predictions.jsonl"
LINE = TypeAdapter(Prediction)

Box = Annotated[list[float], Field(min_length=4, max_length=4)]


@dataclass(frozen=True)
class Label:
    """The value of a label; more keys are allowed."""

    label: str


@dataclass(frozen=True)
class Choice:
    """The value of a choice."""

    choice: Annotated[int, Field(ge=0)]
    probabilities: list[float]


@dataclass(frozen=True)
class Region:
    """The value of a region."""

    box: Box


VALUES: dict[str, TypeAdapter[Any]] = {
    "label": TypeAdapter(Label),
    "choice": TypeAdapter(Choice),
    "region": TypeAdapter(Region),
    "boxes": TypeAdapter(list[Box]),
}  # kind of prediction -> its values, as `mmgen.examples.Prediction` has them


def read(folder: Path, kind: Gives | None = None) -> list[Prediction]:
    """The prediction of each example, checked against `kind` if it is in `VALUES`. Raises RunError for a missing or
    damaged file."""
    path = folder / FILE
    text = text_of(path)
    predictions = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        with _damage_as_error(f"{path}:{number}: damaged"):
            prediction = LINE.validate_json(line)
        if kind in VALUES:
            with _damage_as_error(f"{path}:{number}: damaged: not a valid {kind}"):
                VALUES[kind].validate_python(prediction.value)
        predictions.append(prediction)
    return predictions


@contextlib.contextmanager
def _damage_as_error(place: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        what = ".".join(map(str, (*first["loc"], first["msg"])))
        raise RunError(f"{place}: {what}; delete the file and run again") from None
