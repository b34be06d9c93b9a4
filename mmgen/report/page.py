"""report.html, the page of a run, in one file: tables, galleries, loss curves, probes, the recipe, the environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import plotting
from ..cards import letter
from ..data.datasets import ScoredOn
from ..errors import RunError
from ..evaluation import probes as probe
from ..files import read_table, write_text
from ..progress import Progress
from ..recipe import show
from ..recipe.layers import Layered
from ..recipe.tables import GENERATOR, Recipe
from ..scoring.intervals import RESAMPLES
from ..scoring.table import ScoreTable
from ..storage.environment import CAN_CHANGE
from ..storage.run_folder import RunFolder
from . import curves
from .galleries import GalleryMaker, Load
from .web_page import render

SHOWN_EXAMPLES = 200  # test examples on a page
AT_A_GLANCE = 3  # pictures at the top
AT_ONCE = 20  # cards that are visible before a click on "Show more"


def try_page(
    recipe: Recipe,
    folder: RunFolder,
    datasets: ScoredOn,
    tables: Sequence[ScoreTable],
    load: Load,
    progress: Progress,
) -> None:
    """Write the page at the end of a run. Any error is reported in one line, so that the run itself succeeds."""
    try:
        write_page(recipe, folder, datasets, tables, load, progress)
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        progress.say(
            f"report.html was not written: {reason}; the run itself is complete; try again with "
            f"`mmgen report {folder.path}`"
        )


def write_page(
    recipe: Recipe,
    folder: RunFolder,
    datasets: ScoredOn,
    tables: Sequence[ScoreTable],
    load: Load,
    progress: Progress,
    shown: int = SHOWN_EXAMPLES,
) -> Path:
    """Write `report.html` to the run's folder. `shown`: maximum number of examples on the page.
    Raises RunError if no step with scores is finished."""
    if not tables:
        raise RunError(f"{folder.path}: no step with scores is finished yet; continue with `mmgen run`")
    steps = [step for run_table in tables for step in run_table.of("step")]
    galleries = GalleryMaker(recipe, folder, datasets, load, progress).galleries(steps, shown)
    cards = [examples for gallery in galleries for examples in gallery["cards"]]
    with_pictures = [examples[0] for examples in cards if examples[0]["shots"]]
    context = {
        "recipe": recipe,
        "tables": tables,
        "resamples": RESAMPLES,
        "glance": with_pictures[:: -(-len(with_pictures) // AT_A_GLANCE) or 1],
        "colours": {
            step: plotting.COLOURS.index(colour) for step, colour in plotting.colours(list(recipe.steps)).items()
        },
        "probes": _probe_results(folder.path / "probes"),
        "plots": _draw_curves(recipe, folder),
        "per_token": all(recipe.steps[step].objectives == (GENERATOR,) for step in recipe.steps),
        "at_once": AT_ONCE,
        "letter": letter,
        "galleries": galleries,
        "cards": cards,
        "data": {
            "lower": sorted(column for run_table in tables for column in run_table.lower),
            "inputs": {step: [name for name in recipe.inputs if name in recipe.steps[step].inputs] for step in steps},
            "steps": [gallery["steps"] for gallery in galleries],
            "looks": {key: looks for gallery in galleries for key, looks in gallery["looks"].items()},
            "scores": {step: scores for gallery in galleries for step, scores in gallery["scores"].items()},
        },
        "environment": read_table(folder.path / "environment.json"),
        "can_change": CAN_CHANGE,
        "dataset": read_table(folder.path / "data.json"),
        "toml": re.sub(r" +# default$", "", show.toml(recipe.identity(), Layered()), flags=re.MULTILINE) + "\n",
    }
    path = folder.path / "report.html"
    write_text(path, render("mmgen.report", "page", context))
    return path


def _draw_curves(recipe: Recipe, folder: RunFolder) -> dict[str, dict[str, Any]]:
    """Kind -> plot."""
    step_curves = {step: curves.read(folder.step(step) / "log.jsonl") for step in recipe.steps}
    return {
        kind: _plot(f"{kind} loss of every step by epoch", curves.draw(step_curves, kind))
        for kind in ("learning", "validation")
        if any(getattr(curve, kind) for curve in step_curves.values())
    }


def _plot(title: str, drawing: str) -> dict[str, Any]:
    return {"title": title, "address": plotting.embedded(drawing), "size": plotting.size(drawing)}


def _probe_results(folder: Path) -> list[dict[str, Any]]:
    """The results of probes: plots as data URIs, tables as texts, notes."""
    results = []
    for name, findings in probe.read(folder).items():
        files = {title: folder / name / Path(file).name for title, file in findings.plots.items()}
        plots = [_plot(title, file.read_text(encoding="utf-8")) for title, file in files.items()]
        tables = {title: [[*map(probe.cell, row)] for row in rows] for title, rows in findings.tables.items()}
        results.append({"name": name, "plots": plots, "tables": tables, "notes": findings.notes})
    return results
