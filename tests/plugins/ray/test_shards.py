"""Shards as tasks: their number, and the list of pictures that could not be read."""

import pytest
from mmgen_ray.shards import list_broken, run_shards

from mmgen.errors import RunError


@pytest.mark.parametrize("name", ["r[1].h5", "r.h5"])
@pytest.mark.parametrize("earlier", ["{}-2-of-4.h5", "{}-2-of-4.h5.partial", ".{}-2-of-4.h5.partial"])
def test_another_number_of_shards_than_before_is_refused(tmp_path, name, earlier):
    path = tmp_path / name
    (tmp_path / earlier.format(path.stem)).touch()
    with pytest.raises(RunError) as error:
        run_shards(None, None, path, 8, "images")  # before any task
    assert str(error.value) == (f"--shards 8: {path} has shards of 4; leave the option out, or delete those shards")


def test_a_hostile_name_is_one_line_of_the_list(tmp_path):
    list_broken(tmp_path / "r.h5", [("b\nx\ty", "not a\nreadable image"), ("a", "\x1b[31mred")])
    assert (tmp_path / "r.h5.broken.tsv").read_text() == ("a\t\\x1b[31mred\nb\\nx\\ty\tnot a\\nreadable image\n")
