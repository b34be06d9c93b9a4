"""Learning curves: the losses in the steps' logs as two plots, for the page and as SVG files in the run's folder."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

POINTS = 120  # a curve at most; each is the mean of the updates it stands for
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
INK = "#123456"  # stands for the page's own ink until the drawing is put there

Points = Sequence[tuple[float, float]]  # (epoch, loss)


@dataclass(frozen=True)
class Curve:
    """Losses of one step."""

    learning: Points
    validation: Points


def read(log: Path) -> Curve:
    """A step's `log.jsonl`. A last line that a kill has cut is passed over."""
    learning, validation = [], []
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else []:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        learning.append((record["epoch"], record["loss"]))
        if record.get("validation_loss") is not None:
            validation.append((record["epoch"], record["validation_loss"]))
    return Curve(thin(learning), validation)


def thin(points: Points) -> Points:
    """At most POINTS of them, each the mean of its neighbours."""
    size = -(-len(points) // POINTS) or 1
    return [
        (fmean(epoch for epoch, _ in part), fmean(loss for _, loss in part))
        for part in (points[first : first + size] for first in range(0, len(points), size))
    ]


def colours(steps: Sequence[str]) -> dict[str, str]:
    return {step: COLOURS[number % len(COLOURS)] for number, step in enumerate(steps)}


def draw(curves: Mapping[str, Curve], kind: str, *, alone: bool) -> str:
    """An SVG of every step's `kind` ("learning" or "validation"). `alone`: with a legend, for a file of its own; or else
    for the page, which has the legend and lends its ink."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    ink = "#333333" if alone else INK
    style = {"svg.fonttype": "none", "svg.hashsalt": kind, "font.size": 9, "text.color": ink, "axes.labelcolor": ink}
    style |= {
        "axes.edgecolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(5.4, 3.0), layout="constrained", facecolor="white" if alone else "none")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot(facecolor="none")
        for step, colour in colours(list(curves)).items():
            points = getattr(curves[step], kind)
            marker = {"marker": "o", "markersize": 3} if kind == "validation" else {}
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.6, label=step, **marker) if points else None
        if kind == "learning":  # which begins far above where it ends
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7), numticks=30))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.grid(axis="y", color=ink, alpha=0.15, linewidth=0.6)
        if alone:
            axes.set_title(f"{kind} loss", loc="left")
            axes.legend(frameon=False)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def inline(svg: str, steps: Sequence[str], label: str) -> str:
    """The drawing without a file's heading, in the page's own colours and fonts."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', rf'<svg \1 role="img" aria-label="{label}">', svg, count=1)
    svg = svg.replace(INK, "currentColor")
    for colour in dict.fromkeys(colours(steps).values()):
        svg = svg.replace(colour, f"var(--curve-{COLOURS.index(colour)})")
    return re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
