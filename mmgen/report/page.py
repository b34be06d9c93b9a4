"""report.html, the page of a run, in one file: tables, galleries, loss curves, probes, the recipe, the environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import plotting
from ..data.datasets import ScoredOn
from ..errors import RunError
from ..evaluation import probes as probe
from ..files import read_table, write_text
from ..progress import Progress
from ..recipe import show
from ..recipe.layers import Layered
from ..recipe.tables import GENERATOR, Recipe
from ..scoring.table import ScoreTable
from ..storage.environment import CAN_CHANGE
from ..storage.run_folder import RunFolder
from . import curves
from .galleries import (
    Load,
    columns_of_metrics,
    kinds_of_results,
    make_cards,
    make_galleries,
    metrics_of_examples,
    scores_by_card,
)
from .page_table import page_table
from .web_page import render

SHOWN_EXAMPLES = 200  # test examples on a page
AT_A_GLANCE = 3  # pictures at the top
AT_ONCE = 20  # cards that are visible before a click on "Show more"
ENVIRONMENT = {name: str for name in ("command", "written", "python", "platform", "device")} | {
    "versions": dict,
    "threads": int,
}


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
    """Write `report.html` and `curves/*.svg` to the run's folder. `shown`: maximum number of examples on the page.
    Raises RunError if no step with scores is finished."""
    if not tables:
        advice = (
            "continue with `mmgen run`"
            if any(step.evaluate for step in recipe.steps.values())
            else "every step has evaluate = false"
        )
        raise RunError(f"{folder.path}: no step with scores is finished yet; {advice}")
    galleries = make_galleries(recipe, folder, datasets, tables, shown)
    cards, data, notes = make_cards(recipe, datasets, galleries, load, progress)
    steps = [step for step in recipe.steps if any(step in gallery.steps for gallery in galleries)]
    of_all_texts = {gallery.number: columns_of_metrics(recipe, gallery, "of_all_texts") for gallery in galleries}
    scores = {
        gallery.number: scores_by_card(folder, datasets, gallery, of_all_texts[gallery.number]) for gallery in galleries
    }
    lower = {gallery.number: columns_of_metrics(recipe, gallery, "lower_is_better") for gallery in galleries}
    table_contexts = [page_table(run_table) for run_table in tables]
    with_pictures = [examples[0] for examples in cards if examples[0]["frame"]]
    context = {
        "recipe": recipe,
        "tables": table_contexts,
        "glance": with_pictures[:: -(-len(with_pictures) // AT_A_GLANCE) or 1],
        "colours": {
            step: plotting.COLOURS.index(colour) for step, colour in plotting.colours(list(recipe.steps)).items()
        },
        "probes": _probe_results(folder.path / "probes"),
        "plots": _draw_curves(recipe, folder),
        "per_token": all(recipe.steps[step].objectives == (GENERATOR,) for step in recipe.steps),
        "at_once": AT_ONCE,
        "galleries": galleries,
        "cards": cards,
        "gallery_notes": notes,
        "metrics": [
            metric
            for number, gallery_scores in scores.items()
            for metric in metrics_of_examples(gallery_scores, number, lower[number])
        ],
        "results": kinds_of_results(recipe, galleries),
        "data": {
            "inputs": {step: [name for name in recipe.inputs if name in recipe.steps[step].inputs] for step in steps},
            "looks": data,
            "scores": {
                key: example_scores
                for gallery_scores in scores.values()
                for key, example_scores in gallery_scores.items()
            },
        },
        "times": {step: seconds for step, seconds in folder.times().items() if step in recipe.steps},
        "environment": read_table(folder.path / "environment.json", **ENVIRONMENT),
        "can_change": CAN_CHANGE,
        "dataset": read_table(folder.path / "data.json", fingerprint=str),
        "toml": re.sub(r" +# default$", "", show.toml(recipe.identity(), Layered()), flags=re.MULTILINE) + "\n",
    }
    path = folder.path / "report.html"
    write_text(path, render("mmgen.report", "page", context))
    return path


def _draw_curves(recipe: Recipe, folder: RunFolder) -> dict[str, dict[str, Any]]:
    """Kind -> plot for the page; each is also saved as a file."""
    step_curves = {step: curves.read(folder.step(step) / "log.jsonl") for step in recipe.steps}
    plots = {}
    for kind in ("learning", "validation"):
        if any(getattr(curve, kind) for curve in step_curves.values()):
            drawing = curves.draw(step_curves, kind)
            write_text(folder.path / "curves" / f"{kind}.svg", drawing)
            plots[kind] = _plot(f"{kind} loss of every step by epoch", drawing)
    return plots


def _plot(title: str, drawing: str) -> dict[str, Any]:
    return {"title": title, "address": plotting.embedded(drawing), "size": plotting.size(drawing)}


def _probe_results(folder: Path) -> list[dict[str, Any]]:
    """The results of probes: plots as data URIs, tables as texts, notes."""
    results = []
    for name, findings in probe.read(folder).items():
        plots = {title: folder / name / Path(file).name for title, file in findings.plots.items()}
        results.append(
            {
                "name": name,
                "plots": [
                    _plot(title, drawing)
                    for title, path in plots.items()
                    if path.is_file() and (drawing := path.read_text(encoding="utf-8"))
                ],
                "tables": {
                    title: [[probe.cell(value) for value in row] for row in rows]
                    for title, rows in findings.tables.items()
                },
                "notes": findings.notes,
            }
        )
    return results
