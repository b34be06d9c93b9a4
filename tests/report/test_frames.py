"""Frames: pictures side by side."""

import pytest

from mmgen.report.frames import Frame


def test_pictures_side_by_side_have_equal_height_and_boxes_follow():
    frame = Frame((("a", 200, 100), ("b", 100, 100)))
    wide, narrow = frame.shares
    assert wide == pytest.approx(2 * narrow) and wide + narrow == pytest.approx(0.98)
    assert frame.ratio * wide == pytest.approx(2)  # the aspect ratio stays the same
    assert frame.place((0, 0, 1, 1)) == [0, 0, round(wide, 3), 1]
    assert frame.place((0.5, 0, 1, 0.5), 1) == [round(wide + 0.02 + narrow / 2, 3), 0, 1.0, 0.5]
