"""A straight line through measured times."""

import pytest
from mmgen_bench.scaling import Curve, draw

pytestmark = pytest.mark.slow


def test_a_straight_line_is_found_and_drawn(tmp_path):
    curve = Curve("images", (1, 2, 4), (3.0, 5.0, 9.0))
    assert curve.line == (pytest.approx(1), pytest.approx(2)) and curve.max_deviation < 1e-9
    draw([curve, curve], tmp_path / "a.svg")
    draw([curve, curve], tmp_path / "b.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn == (tmp_path / "b.svg").read_text() and "seconds per batch" in drawn
