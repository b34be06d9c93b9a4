"""Plots that look alike everywhere: one colour a step, ink that a page can replace, SVG and PNG files that repeat byte
for byte.

matplotlib is used through its objects; nothing is kept between two drawings.
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

COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#b8860b",
    "#56b4e9",
    "#8c564b",
    "#7f7f7f",
)  # told apart by the colour-blind too
DARK = (
    "#4aa8dd",
    "#f08a4b",
    "#3cc49b",
    "#e0a3c5",
    "#d9ad3c",
    "#8fd0f5",
    "#c08f85",
    "#a8a8a8",
)  # the same on a dark page
INK = "#123456"  # stands for a page's own ink until a drawing is put there
PLAIN_INK, DARK_INK = "#333333", "#e9e7e0"
DOTS = 150  # an inch, of PNG files


def colour(place: int) -> str:
    """Of the step at this place of a run."""
    return COLOURS[place % len(COLOURS)]


def colours(steps: Sequence[str]) -> dict[str, str]:
    return {step: colour(place) for place, step in enumerate(steps)}


@contextlib.contextmanager
def figure(
    width: float, height: float, *, salt: str, ink: str = PLAIN_INK, paper: str = "white", layout: Any = "constrained"
) -> Iterator[Any]:
    """A matplotlib figure of so many inches in the house's style, to be drawn on and saved within. `salt`: names in the
    SVG follow from it, so that a drawing repeats."""
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
    style |= {key: ink for key in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from"
        )  # a box stands for a letter that the font lacks
        made = Figure(figsize=(width, height), layout=layout, facecolor=paper)
        FigureCanvasAgg(made)
        yield made


def svg(made: Any) -> str:
    """The figure as SVG; letters stay letters."""
    out = io.StringIO()
    made.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def save(made: Any, path: Path) -> str:
    """`path`.svg and `path`.png; the name of the first."""
    drawn, dots = (path.with_name(f"{path.name}.{kind}") for kind in ("svg", "png"))
    drawn.write_text(svg(made), encoding="utf-8")
    made.savefig(dots, dpi=DOTS, metadata={"Software": None})
    return drawn.name


def size(drawing: str) -> tuple[int, int]:
    """Width and height of an SVG file in a page's pixels, so that a page knows them before it draws; (0, 0) for one
    without a viewBox."""
    box = re.search(r'<svg [^>]*?viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', drawing)
    return (round(float(box[1]) * 4 / 3), round(float(box[2]) * 4 / 3)) if box else (0, 0)  # its units are points


def inline(drawing: str, steps: Sequence[str], label: str) -> str:
    """An SVG without a file's heading, in a page's own colours and fonts."""
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.DOTALL)
    drawing = re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', rf'<svg \1 role="img" aria-label="{label}">', drawing, count=1
    )
    drawing = drawing.replace(INK, "currentColor")
    for each in dict.fromkeys(colours(steps).values()):
        drawing = drawing.replace(each, f"var(--curve-{COLOURS.index(each)})")
    return re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", drawing)


def embedded(drawing: str) -> str:
    """An SVG file as an address for an image of a page: it follows the page from light to dark, and nothing in it can
    run."""
    drawing = drawing[drawing.index("<svg") :]
    paper = r'(<g id="patch_1">\s*<path [^>]*style="fill: )#ffffff'  # matplotlib's background, the first patch
    drawing = re.sub(paper, r"\1none", drawing, count=1)
    names = [*((each, f"c{place}") for place, each in enumerate(COLOURS)), (PLAIN_INK, "ink")]
    for plain, name in names:
        drawing = drawing.replace(plain, f"var(--{name}, {plain})")
    drawing = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: system-ui, sans-serif", drawing)
    dark = "".join(f"--c{place}: {each};" for place, each in enumerate(DARK)) + f"--ink: {DARK_INK};"
    rule = f"<style>@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}</style>"
    drawing = re.sub(r"(<svg [^>]*>)", rf"\1{rule}", drawing, count=1)
    return f"data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()}"
