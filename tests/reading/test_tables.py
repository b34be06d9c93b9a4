"""Tables with a header: cells by column, and mistakes with their line."""

import pytest

from mmgen.errors import DataError
from mmgen.reading.text import rows

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
    with pytest.raises(DataError) as caught:
        [*rows(path)]
    assert str(caught.value) == f"{path}{message}"
