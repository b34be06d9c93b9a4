"""Plots in one style."""

import base64
import re

import pytest

from mmgen.plotting import COLOURS, DARK_INK, colour, embedded, figure, save, size, svg

pytestmark = pytest.mark.slow


def test_files_are_the_same_to_the_byte_and_text_stays_text(tmp_path):
    for name in ("first", "second"):
        with figure(3, 2, salt="test") as plot:
            plot.add_subplot().set_xlabel("updates")
            assert save(plot, tmp_path / name) == f"{name}.svg"
    for kind in ("svg", "png"):
        assert (tmp_path / f"first.{kind}").read_bytes() == (tmp_path / f"second.{kind}").read_bytes()
    assert ">updates</text>" in (tmp_path / "first.svg").read_text()


def test_an_image_follows_light_and_dark_mode():
    with figure(3, 2, salt="test") as plot:
        axes = plot.add_subplot()
        axes.plot([1, 2], [3, 4], color=colour(0))
        drawing = svg(plot)
    assert size(drawing) == (288, 192) and size("<svg>") == (0, 0)
    url = embedded(drawing)
    text = base64.b64decode(url.removeprefix("data:image/svg+xml;base64,")).decode()
    assert "prefers-color-scheme: dark" in text and f"--ink: {DARK_INK};" in text
    assert f"var(--c0, {COLOURS[0]})" in text and re.search(r'id="patch_1">\s*<path [^>]*style="fill: none', text)
