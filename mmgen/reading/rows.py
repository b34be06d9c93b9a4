"""Rows of published files as pydantic models, validated one by one; a mistake is one line with file, row and key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from ..errors import DataError
from ..files import image_key
from .text import LONGEST, json_lines, kind, parse_json, read_text

INVALID = re.compile("[\0\ud800-\udfff]")


class Row(BaseModel):
    """The base of rows: no other types than those it names (no "3" for 3), other keys are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, extra="ignore")


def tidy(value: str) -> str:
    """A text on one line, without blanks at its ends. Raises ValueError for what a tokenizer cannot read."""
    if len(value) > LONGEST:
        raise ValueError(f"has {len(value):,} characters; the limit is {LONGEST:,}; the file is damaged")
    text = " ".join(value.split())
    if bad := INVALID.search(text):
        raise ValueError(f"contains {bad[0]!r}, which is not a valid character; the file is damaged")
    return text


def _filled(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"must be a number or a text, not {kind(value)}")
    return _filled(tidy(str(value)))


def _key(value: Any) -> str:
    return _filled(image_key(_id(value))) if isinstance(value, str) else _id(value)


Line = Annotated[str, AfterValidator(tidy)]  # a text on one line
Filled = Annotated[Line, AfterValidator(_filled)]
Id = Annotated[str, BeforeValidator(_id)]  # a text or a number
Key = Annotated[str, BeforeValidator(_key)]  # the image key of a file name or a number (`mmgen.files.image_key`)

Model = TypeVar("Model", bound=BaseModel)


def raw_rows(path: Path, at: str = "") -> Iterator[tuple[str, Any]]:
    """The rows of a file, each with its place: "val.json: annotations[3]", or file:line. Raises DataError.

    at  the key of the JSON list with the rows; the list may be the whole file. Without it, the file has a JSON value a
        line
    """
    if not at:
        yield from ((f"{path}:{number}", row) for number, row in json_lines(path))
        return
    table = parse_json(read_text(path), path)
    items = table.get(at) if isinstance(table, dict) else table
    if not isinstance(items, list):
        raise DataError(f"{path}: has no list '{at}'; use the file as it was published")
    yield from ((f"{path}: {at}[{number}]", item) for number, item in enumerate(items))


def validated(rows: Iterable[tuple[str, Any]], model: type[Model], unique: str = "") -> Iterator[tuple[str, Model]]:
    """Rows with their places, one by one as a model. `unique`: a key whose values must differ. Raises DataError."""
    seen = set()
    for place, value in rows:
        row = validate(value, model, place)
        if unique:
            if (name := getattr(row, unique)) in seen:
                raise DataError(f"{place}: duplicate {unique} '{name:.60}'")
            seen.add(name)
        yield place, row


def validate(value: Any, model: type[Model], place: object) -> Model:
    """A value as a model. Raises DataError."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise DataError(f"{place}: {describe(error)}") from None


def describe(error: ValidationError) -> str:
    """The first mistake: "answers[3].answer must be a valid string, not a number"."""
    first = error.errors(include_url=False)[0]
    *outer, last = first["loc"] or ("",)
    if first["type"] == "missing":
        return f"{_name(outer)} has no '{last}'".strip()
    text, value = str(first.get("ctx", {}).get("error") or first["msg"]), first["input"]
    text = text.replace("Input should", "must").replace("List should", "must")
    if first["type"].endswith(("_type", "_error")) and first["type"] != "value_error":
        text += f", not {kind(value) if isinstance(value, dict | list) else repr(value)[:60]}"
    return f"{_name(first['loc'])} {text}".strip()


def _name(loc: Iterable[int | str]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")
