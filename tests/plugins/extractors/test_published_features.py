"""What the readers of published feature files share: relative boxes, base64, class names."""

import base64

import numpy as np
import pytest
from mmgen_extractors import published_features

from mmgen.errors import DataError


def test_boxes_become_relative():
    boxes = published_features.relative_boxes(np.array([[10, 5, 20, 10]]), 40, 20)
    assert boxes.tolist() == [[0.25, 0.25, 0.5, 0.5]] and boxes.dtype == np.float32
    with pytest.raises(ValueError, match="the image size is 0 x 20 pixels; it must be positive"):
        published_features.relative_boxes(np.zeros((1, 4)), 0, 20)


@pytest.mark.parametrize("text", [b"AAA", b"AAAA"])
def test_damaged_base64(text):
    with pytest.raises(ValueError, match="boxes: not base64 of f4 numbers, or truncated"):
        published_features.decode(text, "<f4", "boxes")
    assert published_features.decode(base64.b64encode(np.float32([1.5]).tobytes()), "<f4", "boxes").tolist() == [1.5]


def test_class_names_are_the_first_of_each_line(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("yolk\negg,eggs\u2028\n", encoding="utf-8")
    assert published_features.read_vocabulary(path) == ["yolk", "egg"]


def test_numbers_without_a_name():
    names, numbers = ["yolk", "egg"], np.array([1.0, 7.0])
    assert (
        published_features.names_of(numbers, names) == ("egg", "class 7")
        and published_features.names_of(None, names) is None
    )
    classes = published_features.single_classes(numbers, np.array([0.9, 0.8]), names)
    assert classes.ids.tolist() == [[1], [-1]] and classes.probabilities.tolist() == [[np.float32(0.9)], [0.0]]


def test_a_background_column_is_left_out():
    classes = published_features.distributions(np.float32([[0.5, 0.4, 0.1]]), ["yolk", "egg"])
    assert classes.distributions()[0].argmax() == 0
    with pytest.raises(ValueError, match=r"cls_prob has shape \(1, 4\), but there are 2 class names"):
        published_features.distributions(np.zeros((1, 4)), ["yolk", "egg"])


def test_a_source_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        published_features.existing_path(tmp_path / "x")
    assert published_features.existing_path(tmp_path) == tmp_path
