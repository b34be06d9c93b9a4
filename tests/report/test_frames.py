"""Frames: pictures side by side, and outlines of boxes on them."""

import pytest

from mmgen.report.frames import Frame, outlines


def test_overlapping_outlines_alternate():
    box, far = (0.1, 0.1, 0.5, 0.5), (0.6, 0.6, 0.9, 0.9)
    right, first, second, away = outlines({"one": box, "other": (0.1, 0.1, 0.5, 0.51), "away": far}, box)
    assert [outline["dashes"] for outline in (right, first, second)] == ["11 22"] * 3 and away["dashes"] == ""
    assert [outline["offset"] for outline in (right, first, second)] == [0, -11, -22]
    wider = outlines({"one": (0.1, 0.1, 0.54, 0.5)}, box)  # one side is far enough away to be seen
    assert [outline["dashes"] for outline in wider] == ["", ""]


def test_pictures_side_by_side_have_equal_height_and_boxes_follow():
    frame = Frame((("a", 200, 100), ("b", 100, 100)))
    wide, narrow = frame.shares
    assert wide == pytest.approx(2 * narrow) and wide + narrow == pytest.approx(0.98)
    assert frame.ratio * wide == pytest.approx(2)  # the aspect ratio stays the same
    assert frame.place((0, 0, 1, 1)) == [0, 0, round(wide, 3), 1]
    assert frame.place((0.5, 0, 1, 0.5), 1) == [round(wide + 0.02 + narrow / 2, 3), 0, 1.0, 0.5]
