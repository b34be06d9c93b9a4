"""Plots in one style: figures, a colour per step, byte-identical SVG and PNG files, and SVG for use inside a page.

matplotlib is used through its objects, without global state.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# distinguishable for colour-blind people; then the same for a dark page
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#8c564b", "#7f7f7f")
DARK = ("#4aa8dd", "#f08a4b", "#3cc49b", "#e0a3c5", "#d9ad3c", "#8fd0f5", "#c08f85", "#a8a8a8")
PLAIN_INK, DARK_INK = "#333333", "#e9e7e0"
DOTS = 150  # per inch, of PNG files


def colour(place: int) -> str:
    """The colour of the step with this index in a run."""
    return COLOURS[place % len(COLOURS)]


def colours(steps: Sequence[str]) -> dict[str, str]:
    return {step: colour(place) for place, step in enumerate(steps)}


@contextlib.contextmanager
def figure(width: float, height: float, *, salt: str, layout: Any = "constrained") -> Iterator[Any]:
    """A matplotlib figure in mmgen's style, size in inches, to draw on and save inside the context. `salt`: seed of the
    names in the SVG, so that the file is reproducible."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    style |= {
        key: PLAIN_INK for key in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    }
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from"
        )  # a character that the font lacks becomes a box
        plot = Figure(figsize=(width, height), layout=layout, facecolor="white")
        FigureCanvasAgg(plot)
        yield plot


def svg(plot: Any) -> str:
    """The figure as SVG; text stays text."""
    out = io.StringIO()
    plot.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def save(plot: Any, path: Path) -> str:
    """Write `path`.svg and `path`.png; returns the name of the SVG file."""
    drawn, dots = (path.with_name(f"{path.name}.{kind}") for kind in ("svg", "png"))
    drawn.write_text(svg(plot), encoding="utf-8")
    plot.savefig(dots, dpi=DOTS, metadata={"Software": None})
    return drawn.name


def size(drawing: str) -> tuple[int, int]:
    """Width and height of an SVG in pixels, so that a page can reserve the space; (0, 0) without a viewBox."""
    box = re.search(r'<svg [^>]*?viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', drawing)
    return (round(float(box[1]) * 4 / 3), round(float(box[2]) * 4 / 3)) if box else (0, 0)  # the units are points


def embedded(drawing: str) -> str:
    """An SVG as a data URL for an image: it follows the light or dark mode, and cannot run scripts."""
    drawing = drawing[drawing.index("<svg") :]
    paper = r'(<g id="patch_1">\s*<path [^>]*style="fill: )#ffffff'  # matplotlib's background, the first patch
    drawing = re.sub(paper, r"\1none", drawing, count=1)
    names = [*((light, f"c{place}") for place, light in enumerate(COLOURS)), (PLAIN_INK, "ink")]
    for plain, name in names:
        drawing = drawing.replace(plain, f"var(--{name}, {plain})")
    drawing = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: system-ui, sans-serif", drawing)
    dark = "".join(f"--c{place}: {light};" for place, light in enumerate(DARK)) + f"--ink: {DARK_INK};"
    rule = f"<style>@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}</style>"
    drawing = re.sub(r"(<svg [^>]*>)", rf"\1{rule}", drawing, count=1)
    return f"data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()}"
