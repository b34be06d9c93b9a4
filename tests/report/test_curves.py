"""Loss curves: thinned to means, and drawn in the colours of the page."""

import json
import re

import pytest

from mmgen.report import curves


def test_curves_are_thinned_and_a_truncated_line_is_ignored(tmp_path):
    lines = [json.dumps({"update": n, "epoch": n / 100, "loss": float(n)}) for n in range(1000)]
    (tmp_path / "log.jsonl").write_text(
        "\n".join([*lines, '{"update": 1000, "epoch": 9.99, "loss": 1, "validation_loss": 3.5}', '{"upda'])
    )
    curve = curves.read(tmp_path / "log.jsonl")
    assert len(curve.learning) == curves.POINTS and curve.learning[0] == pytest.approx((0.04, 4.0))
    assert curve.validation == [(10, 3.5)]
    assert curves.read(tmp_path / "none.jsonl") == curves.Curve([], [])


def test_every_point_of_a_curve_is_a_mean_of_many_updates():
    """Otherwise the last point jumps."""
    for count in (1, 119, 121, 241, 1000):
        thinned = curves.thin([(float(n), 1.0 if n < count - 1 else 1000.0) for n in range(count)])
        assert len(thinned) == min(count, curves.POINTS)
        assert count < curves.POINTS or thinned[-1][1] <= 1 + 999 / (count // curves.POINTS)
    assert curves.thin([]) == []


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_ticks_are_whole_epochs(epochs):
    curve = curves.Curve([], [(epoch + 1.0, 2.0) for epoch in range(epochs)])
    axis = curves.draw({"both": curve}, "validation").split('id="matplotlib.axis_2"')[0]
    assert re.findall(r"<text[^>]*>([^<]*)</text>", axis) == [*map(str, range(1, epochs + 1)), "epoch"]
