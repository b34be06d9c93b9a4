"""Text, JSON and tables of any origin: read completely, or refused with the place of the mistake."""

import gzip

import pytest
from kit.refusals import refusal

from mmgen.reading.text import json_lines, parse_json, read_text, rows


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("ab\nc".encode("utf-16"), ":1: the encoding is not UTF-8; save the file as UTF-8"),
        ("one\ncaf\xe9\n".encode("latin-1"), ":2: the encoding is not UTF-8; save the file as UTF-8"),
    ],
)
def test_encodings_that_are_not_utf_8_name_the_line(tmp_path, data, message):
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    assert refusal(read_text, path) == f"{path}{message}"


def test_gzipped_files_and_byte_order_marks_are_read(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress("\ufeffcafé".encode()))
    assert read_text(path) == "café"
    path.write_bytes(path.read_bytes()[:-9])
    assert refusal(read_text, path).endswith("; the file may be cut short: get it again")
    assert refusal(read_text, tmp_path / "none") == f"{tmp_path}/none: cannot be read: No such file or directory"


def test_invalid_json_names_line_and_column(tmp_path):
    path = tmp_path / "a.json"
    assert refusal(parse_json, '{"a": 1,\n "b" 2}', path) == (
        f"{path}:2: not valid JSON: Expecting ':' delimiter (line 2, column 6)"
    )
    path.write_text('1\n\n{"a": 2}\n{\n')
    lines = json_lines(path)
    assert [next(lines), next(lines)] == [(1, 1), (3, {"a": 2})]
    assert refusal(next, lines).startswith(f"{path}:4: not valid JSON: ")
    assert refusal(parse_json, "[" * 100_000, path).startswith(f"{path}:1: nested too deeply")


def test_a_folder_is_not_a_text(tmp_path):
    assert refusal(read_text, tmp_path) == f"{tmp_path}: is a folder; name a file"


ROWS = [(1, ["id", "text"]), (2, ["1", "a, b"]), (3, ["2", "c;\td"])]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("excel.csv", '\ufeffid,text\r\n1,"a, b"\r\n2,c;\td\r\n', ROWS),
        ("tabs.tsv", 'id\ttext\n1\ta, b\n2\t"c;\td"\n', ROWS),
        ("quoted.csv", '"id; old","text"\n1,a\n', [(1, ["id; old", "text"]), (2, ["1", "a"])]),
        ("commas in a name.tsv", "id\ta, b, c\n1\tx\n", [(1, ["id", "a, b, c"]), (2, ["1", "x"])]),
        ("one.csv", "text\na; b\n", [(1, ["text"]), (2, ["a; b"])]),
    ],
)
def test_the_name_says_by_what_cells_are_separated(tmp_path, name, text, expected):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    assert [*rows(path)] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "id,text\n1,a,b\n",
            ":2: values: 3, columns: 2; put texts with a comma in quotation marks",
        ),
        (
            'id,text\n1,"a\n',
            ":2: its quotation marks, or those of a line before, do not fit: unexpected end of data",
        ),
    ],
)
def test_a_row_that_cannot_be_read_names_its_line(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert refusal(lambda: [*rows(path)]) == f"{path}{message}"
