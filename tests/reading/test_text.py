"""Text and JSON files of any origin: read completely, or refused with the place of the mistake."""

import gzip

import pytest

from mmgen.errors import DataError
from mmgen.reading.text import json_lines, parse_json, read_text


def refused(read, *arguments) -> str:
    with pytest.raises(DataError) as caught:
        read(*arguments)
    return str(caught.value)


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
    assert refused(read_text, path) == f"{path}{message}"


def test_gzipped_files_and_byte_order_marks_are_read(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress("\ufeffcafé".encode()))
    assert read_text(path) == "café"
    path.write_bytes(path.read_bytes()[:-9])
    assert refused(read_text, path).endswith("; the file may be cut short: get it again")
    assert refused(read_text, tmp_path / "none") == f"{tmp_path}/none: cannot be read: No such file or directory"


def test_invalid_json_names_line_and_column(tmp_path):
    path = tmp_path / "a.json"
    assert refused(parse_json, '{"a": 1,\n "b" 2}', path) == (
        f"{path}:2: not valid JSON: Expecting ':' delimiter (line 2, column 6)"
    )
    path.write_text('1\n\n{"a": 2}\n{\n')
    lines = json_lines(path)
    assert [next(lines), next(lines)] == [(1, 1), (3, {"a": 2})]
    assert refused(next, lines).startswith(f"{path}:4: not valid JSON: ")
    assert refused(parse_json, "[" * 100_000, path).startswith(f"{path}:1: nested too deeply")


def test_a_folder_is_not_a_text(tmp_path):
    with pytest.raises(DataError) as error:
        read_text(tmp_path)
    assert str(error.value) == f"{tmp_path}: is a folder; name a file"
