"""Loss curves from the steps' logs, as plots on the page and as SVG files in the run's folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from .. import plotting
from ..errors import RunError
from ..plotting import PLAIN_INK, colours

POINTS = 120  # maximum per curve; each point is the mean of equally many updates, give or take one

WIDTH, HEIGHT = 5.4, 3.0  # inches of a drawing
LEFT, BELOW = 0.5, 0.45  # inches for the labels beside and below the axes

Points = Sequence[tuple[float, float]]  # (epoch, loss)


@dataclass(frozen=True)
class Curve:
    """Losses of one step."""

    learning: Points
    validation: Points


def read(log: Path) -> Curve:
    """Read a step's `log.jsonl`. A truncated last line (of a killed run) is ignored. Raises RunError for any other
    damaged line."""
    learning, validation = [], []
    lines = _lines(log)
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            epoch, loss, validation_loss = record["epoch"], record["loss"], record.get("validation_loss")
            values = (epoch, loss, 0.0 if validation_loss is None else validation_loss)
            if not all(isinstance(value, int | float) for value in values) or not math.isfinite(epoch):
                raise ValueError("expected numbers for epoch and loss")
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            if number == len(lines):
                continue
            raise RunError(f"{log}:{number}: damaged: {error}; the step's loss curve cannot be drawn") from None
        learning.append((epoch, loss))
        if validation_loss is not None:
            validation.append((math.floor(epoch) + 1, validation_loss))  # of the weights after the epoch
    return Curve(thin(learning), validation)


def _lines(log: Path) -> list[bytes]:
    """The lines of a log; none if it is missing. Raises RunError."""
    try:
        return log.read_bytes().removesuffix(b"\n").split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{log}: cannot be read: {error.strerror}; the step's loss curve cannot be drawn") from None


def thin(points: Points) -> Points:
    """Reduce points to at most POINTS means of neighbours, each over equally many points, give or take one."""
    count = min(POINTS, len(points))
    ends = [len(points) * place // count for place in range(count + 1)] if count else []
    return [
        (fmean(epoch for epoch, _ in part), fmean(loss for _, loss in part))
        for part in (points[first:last] for first, last in pairwise(ends))
    ]


def draw(curves: Mapping[str, Curve], kind: str) -> str:
    """An SVG of every step's `kind` of loss ("learning" or "validation")."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    # fixed margins: to compute them, matplotlib would draw everything twice
    with plotting.figure(WIDTH, HEIGHT, salt=kind, layout=None) as figure:
        top = HEIGHT - 0.3
        axes = figure.add_axes(
            (LEFT / WIDTH, BELOW / HEIGHT, (WIDTH - LEFT - 0.1) / WIDTH, (top - BELOW) / HEIGHT), facecolor="none"
        )
        for step, colour in colours(list(curves)).items():
            points = getattr(curves[step], kind)
            dots = kind == "validation" or len(points) == 1  # a line through one point would not be seen
            marker = {"marker": "o", "markersize": 3} if dots else {}
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.6, label=step, **marker) if points else None
        if kind == "learning":  # starts far above its end
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7), numticks=30))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_xlabel("epoch")
        axes.grid(axis="y", color=PLAIN_INK, alpha=0.15, linewidth=0.6)
        axes.set_title(f"{kind} loss", loc="left")
        axes.legend(frameon=False)
        return plotting.svg(figure)
