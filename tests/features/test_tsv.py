"""Region features in the format of bottom-up attention."""

import base64

import numpy as np
import pytest

from mmgen.errors import DataError
from mmgen.features.tsv import write_tsv
from mmgen.parts import Record


def record(key, boxes=((0.0, 0.5, 0.5, 1.0),)):
    return Record(key, np.array([[1.5, -2.0]], np.float32), None if boxes is None else np.array(boxes, np.float32))


def test_lines_have_boxes_in_pixels_and_arrays_as_base64(tmp_path):
    count = write_tsv(tmp_path / "r.tsv", [record("7"), record("unsized")], {"7": (40, 20)})
    (line,) = (tmp_path / "r.tsv").read_text().splitlines()
    key, width, height, boxes, pixels, features = line.split("\t")
    assert (count, key, width, height, boxes) == (1, "7", "40", "20", "1")
    assert np.frombuffer(base64.b64decode(pixels), "<f4").tolist() == [0, 10, 20, 20]
    assert np.frombuffer(base64.b64decode(features), "<f4").tolist() == [1.5, -2.0]


def test_features_without_boxes_are_refused(tmp_path):
    with pytest.raises(DataError, match="the features of image '7' have no boxes, which this format requires"):
        write_tsv(tmp_path / "r.tsv", [record("7", None)], {"7": (40, 20)})
