"""Files of a data set: found by any of their names; one message lists all missing files."""

import gzip

import pytest
from mmgen_vl.find_files import Finder

from mmgen.errors import DataError
from mmgen.reading.text import json_lines


def test_a_file_is_found_by_its_second_name_in_a_subfolder_and_gzipped(tmp_path):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/b.json.gz").write_bytes(gzip.compress(b"[1]\n\n[2]"))
    finder = Finder("A set", tmp_path)
    path = finder.file(["a.json", "b.json"], "nowhere")
    finder.finish("")
    assert path == tmp_path / "annotations/b.json.gz"
    assert list(json_lines(path)) == [(1, [1]), (3, [2])]


def test_one_message_lists_all_missing_files_and_what_to_do(tmp_path):
    (tmp_path / "existing.json").touch()
    (tmp_path / "photos").touch()
    finder = Finder("A set", tmp_path)
    assert finder.file(["existing.json"], "x.org") == tmp_path / "existing.json"
    assert finder.file(["a.json", "b.json"], "x.org/a") == tmp_path / "a.json"
    finder.file(["c.json"], "")
    finder.subfolder("photos", "data.images names it")
    with pytest.raises(DataError) as error:
        finder.finish("put them there")
    assert str(error.value) == (
        f"A set: 2 files are missing:\n  {tmp_path}/a.json  <- x.org/a\n  {tmp_path}/c.json\n  put them there\n"
        f"A set: {tmp_path}/photos: is not a folder; data.images names it"
    )


def test_the_files_and_folders_that_exist_are_noted(tmp_path):
    (tmp_path / "a.json").touch()
    (tmp_path / "photos").mkdir()
    finder = Finder("A set", tmp_path)
    finder.file(["b.json", "a.json"], "")
    finder.file(["c.json"], "")
    finder.subfolder("photos", "")
    finder.subfolder("pictures", "")
    assert finder.paths == [tmp_path / "a.json", tmp_path / "photos"]
