"""Rows of files as models: texts, ids and keys; a mistake is one line with its place."""

import json

import pytest
from kit.refusals import refusal
from pydantic import Field

from mmgen.errors import DataError
from mmgen.reading.rows import Filled, Id, Key, Line, Row, raw_rows, validated


class Answer(Row):
    answer: Line


class Question(Row):
    id: Id
    image: Key | None = None
    text: Filled = "what?"
    answers: list[Answer] = Field([], max_length=2)


def read(path, *rows, at="rows"):
    path.write_text(json.dumps({at: rows}))
    return [row for _, row in validated(raw_rows(path, "rows"), Question, unique="id")]


def test_rows_of_a_list_and_of_lines(tmp_path):
    row = {"id": 7, "image": "COCO_val2014_000000000042.jpg", "text": " a\n dog\t", "more": []}
    (first,) = read(tmp_path / "a.json", row)
    assert (first.id, first.image, first.text, first.answers) == ("7", "42", "a dog", [])
    (tmp_path / "bare.json").write_text(json.dumps([row]))
    assert [place for place, _ in raw_rows(tmp_path / "bare.json", "rows")] == [f"{tmp_path}/bare.json: rows[0]"]
    (tmp_path / "a.jsonl").write_text("\n" + json.dumps(row))
    assert [*raw_rows(tmp_path / "a.jsonl")] == [(f"{tmp_path}/a.jsonl:2", row)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({}, "has no 'id'"),
        ([], "must be a valid dictionary or instance of Question, not a list"),
        ({"id": True}, "id must be a number or a text, not true or false"),
        ({"id": " "}, "id is empty"),
        ({"id": 1, "text": 3}, "text must be a valid string, not 3"),
        ({"id": 1, "text": "a\0b"}, "text contains '\\x00', which is not a valid character; the file is damaged"),
        ({"id": 1, "text": "a" * 2_000_000}, "text has 2,000,000 characters; the limit is 1,000,000; the file is dam"),
        ({"id": 1, "answers": [{"answer": "a"}, {}]}, "answers[1] has no 'answer'"),
        ({"id": 1, "answers": [{"answer": {}}]}, "answers[0].answer must be a valid string, not a table"),
        ({"id": 0}, "duplicate id '0'"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, row, message):
    said = refusal(read, tmp_path / "a.json", {"id": 0}, row)
    assert said.startswith(f"{tmp_path}/a.json: rows[1]: {message}")


def test_a_file_without_the_list(tmp_path):
    with pytest.raises(DataError, match="a.json: has no list 'rows'; use the file as it was published"):
        read(tmp_path / "a.json", at="images")
