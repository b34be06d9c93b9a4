"""Files of a data set: found under any of their names, and told in one message where they are not."""

import gzip

import pytest

from mmgen.errors import DataError
from mmgen.reading.finding import Finder
from mmgen.reading.text import json_lines


def test_a_file_is_found_under_its_other_names_in_a_subfolder_and_gzipped(tmp_path):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/b.json.gz").write_bytes(gzip.compress(b"[1]\n\n[2]"))
    finder = Finder("A set", tmp_path)
    found = finder.file(["a.json", "b.json"], "nowhere")
    finder.finish("")
    assert found == tmp_path / "annotations/b.json.gz"
    assert list(json_lines(found)) == [(1, [1]), (3, [2])]


def test_all_that_is_missing_is_told_at_once_with_what_to_do(tmp_path):
    (tmp_path / "there.json").touch()
    (tmp_path / "photos").touch()
    finder = Finder("A set", tmp_path)
    assert finder.file(["there.json"], "x.org") == tmp_path / "there.json"
    assert finder.file(["a.json", "b.json"], "x.org/a") == tmp_path / "a.json"
    finder.file(["c.json"], "")
    finder.subfolder("photos", "data.images names it")
    with pytest.raises(DataError) as error:
        finder.finish("put them there")
    assert str(error.value) == (
        f"A set: 2 files are missing:\n  {tmp_path}/a.json  <- x.org/a\n  {tmp_path}/c.json\n  put them there\n"
        f"A set: {tmp_path}/photos: is no folder; data.images names it"
    )
