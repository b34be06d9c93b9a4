"""Rows of tables (CSV, TSV, their cells in quotation marks or not) and of JSON lines, by the names of fields."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from mmgen_vision.answers import PEOPLE, normalise
from mmgen_vision.boxes import Box
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from mmgen.errors import DataError, did_you_mean
from mmgen.reading.rows import Filled, Id, Key, Line, Row, validated
from mmgen.reading.text import BETWEEN, is_table, join_names, json_lines, kind, rows

USUAL = {  # default name of a column -> field; of two names of a field the first counts
    "id": "id",
    "image": "image",
    "image_id": "image",
    "caption": "caption",
    "captions": "caption",
    "questions": "questions",
    "question": "questions",
}
TRUTHS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def _texts(value: Any) -> list[Any]:
    """Texts; numbers are texts too."""
    values = value if isinstance(value, list) else [value]
    return [str(item) if type(item) in (int, float) else item for item in values]


def _answer(text: str) -> str:
    return normalise(text) or text.lower()


def _truth(value: Any) -> bool:
    if (text := str(value).strip().lower()) not in TRUTHS:
        raise ValueError(f"must be true or false, not {value!r:.60}")
    return TRUTHS[text]


def _box(value: Any) -> Box:
    parts = re.split(r"[\s,;]+", value.strip()) if isinstance(value, str) else value
    with contextlib.suppress(TypeError, ValueError):
        x0, y0, x1, y1 = map(float, parts)
        if 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1:
            return x0, y0, x1, y1
    raise ValueError(f"must be x0 < x1 and y0 < y1 from 0 to 1, relative to the picture's size, not {value!r:.60}")


Texts = Annotated[list[Line], BeforeValidator(_texts)]
AsBox = Annotated[Any, BeforeValidator(_box)]


class TableRow(Row):
    """A row. Further fields are inputs or facts: lists of texts."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Texts]

    id: Id | None = None
    image: Key | None = None
    captions: Texts = Field([], alias="caption")
    questions: Texts = []
    prompt: Texts = []
    answers: Annotated[list[Annotated[Filled, AfterValidator(_answer)]], BeforeValidator(_texts)] = Field(
        [], max_length=PEOPLE
    )
    truth: Annotated[Any, BeforeValidator(_truth)] = None
    choices: list[Filled] = Field([], min_length=2)
    choice: Any = None
    box: AsBox = None
    boxes: list[AsBox] = []

    @property
    def inputs(self) -> dict[str, tuple[str, ...]]:
        """The further fields."""
        return {name: tuple(texts) for name, texts in (self.__pydantic_extra__ or {}).items()}

    @property
    def prompted(self) -> list[tuple[str, str]]:
        """Its questions, each with its prompt or ""."""
        count = len(self.questions)
        prompts = self.prompt if len(self.prompt) == count else [*self.prompt, ""][:1] * count
        return [*zip(self.questions, prompts, strict=True)]

    @field_validator("choice")
    @classmethod
    def _position(cls, value: Any, row: ValidationInfo) -> int:
        """The position of the right choice."""
        choices = row.data.get("choices", [])
        if value in choices:
            return choices.index(value)
        is_number = re.fullmatch("[0-9]{1,9}", str(value)) and not isinstance(value, bool | float)
        if not is_number or int(value) >= len(choices):
            raise ValueError(f"is {value!r:.60}; give one of the choices, or its number from 0 on")
        return int(value)

    @model_validator(mode="after")
    def _check(self):
        if len(self.prompt) not in (0, 1, len(self.questions)):
            raise ValueError(
                f"{len(self.prompt)} prompts for {len(self.questions)} questions; give one, or one per question"
            )
        return self


def read_table(
    path: Path, columns: Mapping[str, str], required: Sequence[str], between: str = BETWEEN
) -> Iterator[tuple[str, TableRow]]:
    """The rows of a table, or of JSON lines, with their places. Empty cells are left out. Raises DataError.

    columns   "id", "image", "caption", "questions", "prompt", a label, or another field -> its column or key
    required  fields that a table or every line must have
    between   the separator of several texts in one cell; "" for one text a cell
    """
    lines = _cells(path, columns, required, between) if is_table(path) else _keys(path, columns, required)
    return validated(lines, TableRow)


def _cells(
    path: Path, columns: Mapping[str, str], required: Sequence[str], between: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    table = rows(path)
    line, header = next(table)
    places = _places(f"{path}:{line}", header, columns, required)
    for number, cells in table:
        row: dict[str, Any] = {name: text for name, place in places.items() if (text := cells[place].strip())}
        for name in row.keys() - {"id", "image"}:
            texts = [text.strip() for text in (row[name].split(between) if between else [row[name]])]
            row[name] = texts if len(texts) > 1 or name in ("choices", "boxes") else texts[0]
        yield f"{path}:{number}", row


def _places(where: str, header: Sequence[str], columns: Mapping[str, str], required: Sequence[str]) -> dict[str, int]:
    """Field -> the index of its column."""
    names = {**{field: name for name, field in reversed(USUAL.items()) if name in header}, **columns}
    for name in [*names.values(), *(field for field in required if field not in names)]:
        if header.count(name) != 1:
            problem = f"{header.count(name)} columns" if name in header else "no column"
            raise DataError(
                f"{where}: {problem} '{name}'{did_you_mean(name, header)}; the columns are: {join_names(header)}; "
                'name it in data.columns, as in columns = { questions = "NAME" }'
            )
    return {field: header.index(name) for field, name in names.items()}


def _keys(path: Path, columns: Mapping[str, str], required: Sequence[str]) -> Iterator[tuple[str, Any]]:
    fields = USUAL | {key: field for field, key in columns.items()}
    for number, item in json_lines(path):
        if not isinstance(item, dict):
            raise DataError(f"{path}:{number}: must be a JSON object, not {kind(item)}")
        row = {fields.get(key, key): value for key, value in item.items()}
        if missing := [columns.get(field, field) for field in required if field not in row]:
            raise DataError(f"{path}:{number}: has no '{missing[0]}'; its keys are: {join_names(item)}")
        yield f"{path}:{number}", {field: value for field, value in row.items() if value not in ("", None, [])}
