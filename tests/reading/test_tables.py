"""Tables with a header: cells by column, and mistakes with their line."""

import pytest

from mmgen.errors import DataError
from mmgen.reading.tables import is_table, rows


def test_the_separator_follows_from_the_name(tmp_path):
    for name, between in (("a.csv", ","), ("a.tsv", "\t"), ("a.TAB", "\t")):
        path = tmp_path / name
        path.write_text(f' id {between}text\n\n1{between}"two\nlines"\n2{between}\n')
        assert is_table(path) and [*rows(path)] == [(1, ["id", "text"]), (4, ["1", "two\nlines"]), (5, ["2", ""])]
    assert is_table(tmp_path / "a.csv.gz") and not is_table(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "id,text\n1,a,b\n",
            ":2: 3 values under 2 columns; put texts with a comma in quotation marks",
        ),
        ('id,text\n1,"a\n', ":2: a quotation mark is not closed before the end of the file; close it"),
        (
            'id,text\n1,"a"b\n',
            ":2: text follows a closing quotation mark; inside a quoted cell, write every quotation mark twice",
        ),
    ],
)
def test_a_row_that_cannot_be_read_names_its_line(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        [*rows(path)]
    assert str(caught.value) == f"{path}{message}"
