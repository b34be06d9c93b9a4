"""What the tasks' published data sets share: numbers, and lists of images."""

import pytest
from mmgen_tasks.dataset import numbers, read_images

from mmgen.errors import DataError


def test_images_are_numbers_one_per_line(tmp_path):
    (tmp_path / "minival.txt").write_text("000042\n\n7 \n7\n")
    assert read_images(tmp_path / "minival.txt") == {"42", "7"}


@pytest.mark.parametrize("line", ["a", "-7", "1.5", "²", "1" * 21])
def test_a_line_that_is_not_a_number(tmp_path, line):
    (tmp_path / "minival.txt").write_text(f"7\n{line}\n")
    with pytest.raises(DataError) as error:
        read_images(tmp_path / "minival.txt")
    assert str(error.value).endswith(f"minival.txt:2: '{line}' is not an image number; write one number per line")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([1, 2, 3], "[1, 2, 3]"),
        ([1, True], "[1, True]"),
        ([1, 1e12], "[1, 1000000000000.0]"),
        ([0] * 9, "a list of 9"),
        ({"x": 1}, "a dict"),
        ("ab", "'ab'"),
    ],
)
def test_what_is_not_so_many_numbers(value, shown):
    assert numbers((1, 2.5), 2, "size") == (1.0, 2.5)
    with pytest.raises(DataError) as error:
        numbers(value, 2, "size")
    assert str(error.value) == f"size must be 2 numbers, not {shown}"
