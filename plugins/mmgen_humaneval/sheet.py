"""The files of a human evaluation as row models: the sheet, its key, what a judge filled in, a program's ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import Field

from mmgen.errors import DataError
from mmgen.reading.rows import Filled as Text
from mmgen.reading.rows import Row, validate
from mmgen.reading.text import parse_json, read_text

Score = Annotated[int, Field(ge=1, le=5)]


class Question(Row):
    """A question as judges see it."""

    id: str
    text: str


class Item(Row):
    """What is shown of a picture: its questions, and perhaps its caption, an answer and the picture itself as (data
    URL, width, height)."""

    questions: list[Question]
    caption: str = ""
    answer: str = ""
    shot: tuple[str, int, int] | None = Field(None, strict=False)


class Round(Row):
    """The criteria that are rated together, and what is shown with the question: "caption", "picture", "answer"."""

    criteria: list[str]
    shows: list[str]


class Sheet(Row):
    """`judge.json`, which the page shows; it names no system. `words`: of each criterion the question to the judge, its
    meaning, and the ends of the scale."""

    source: ClassVar[str] = "the .json file that `mmgen judge make` wrote beside the page"

    format: Literal["mmgen judge sheet 2"] = "mmgen judge sheet 2"
    sheet: str
    rounds: list[Round]
    words: dict[str, list[str]]
    items: list[Item]


class Authored(Question):
    """A question about an example, and the systems that wrote it."""

    example: str
    systems: list[str]


class Key(Row):
    """`judge.key.json`: who wrote what."""

    source: ClassVar[str] = "the .key.json file from `mmgen judge make`"

    format: Literal["mmgen judge key 2"] = "mmgen judge key 2"
    sheet: str = ""
    seed: int
    criteria: list[str]
    systems: list[str]
    human: str
    questions: list[Authored]


class Filled(Row):
    """A judge's ratings: question id -> criterion -> rating."""

    source: ClassVar[str] = "the file that a judge saved from the page"

    format: Literal["mmgen judge sheet 2"] = "mmgen judge sheet 2"
    sheet: str
    judge: Text
    ratings: dict[str, dict[str, Score]]


class Request(Row):
    """A rating that a program has to give. `key`: a hash of prompt and picture, so that a rating can be used again;
    `picture`: the hash of the picture."""

    key: str
    id: str
    criterion: str
    prompt: str
    picture: str | None


class Rating(Row):
    """A program's rating of the request with this key."""

    key: str
    rating: Score
    model: str = ""


File = TypeVar("File", Sheet, Key, Filled)


def read(path: Path, model: type[File]) -> File:
    """The content of a file. Raises DataError."""
    value = parse_json(read_text(path), path)
    try:
        return validate(value, model, path)
    except DataError as error:
        raise DataError(f"{error}; give {model.source}") from None
