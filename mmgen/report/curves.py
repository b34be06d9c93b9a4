"""Loss curves from the steps' logs, as plots on the page."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import plotting
from ..plotting import PLAIN_INK, colours

POINTS = 120  # maximum per curve; each point is the mean of equally many updates, give or take one

WIDTH, HEIGHT = 5.4, 3.0  # inches of a drawing

Points = Sequence[tuple[float, float]]  # (epoch, loss)


@dataclass(frozen=True)
class Curve:
    """Losses of one step."""

    learning: Points
    validation: Points


def read(log: Path) -> Curve:
    """Read a step's `log.jsonl`, empty if it is missing. A damaged line is ignored, such as the truncated last one of a
    killed run."""
    learning, validation = list[tuple[float, float]](), list[tuple[float, float]]()
    for line in log.read_bytes().splitlines() if log.exists() else ():
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            point, validated = (float(record["epoch"]), float(record["loss"])), record.get("validation_loss")
            if validated is not None:
                validation.append((int(record["epoch"]) + 1, float(validated)))  # after the epoch
            learning.append(point)
    return Curve(thin(learning), validation)


def thin(points: Points) -> Points:
    """Reduce points to at most POINTS means of neighbours, each over equally many points, give or take one."""
    parts = np.array_split(np.array(points), min(POINTS, len(points))) if points else []
    return [(float(epoch), float(loss)) for epoch, loss in (part.mean(0) for part in parts)]


def draw(curves: Mapping[str, Curve], kind: str) -> str:
    """An SVG of every step's `kind` of loss ("learning" or "validation")."""
    from matplotlib.ticker import MaxNLocator

    # fixed margins: to compute them, matplotlib would draw everything twice
    with plotting.figure(WIDTH, HEIGHT, salt=kind, layout=None) as figure:
        axes = figure.add_axes((0.09, 0.15, 0.89, 0.82), facecolor="none")
        for step, colour in colours(list(curves)).items():
            points = getattr(curves[step], kind)
            dots = kind == "validation" or len(points) == 1  # a line through one point would not be seen
            if points:
                axes.plot(*zip(*points, strict=True), "o-" if dots else "-", color=colour, linewidth=1.6, markersize=3)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_xlabel("epoch")
        axes.grid(axis="y", color=PLAIN_INK, alpha=0.15, linewidth=0.6)
        return plotting.svg(figure)
