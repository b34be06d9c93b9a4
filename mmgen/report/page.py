"""report.html: one page that carries everything inside it, and opens from a file without a network."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import plotting
from ..data.seeds import resolve
from ..errors import MmgenError, RunError
from ..evaluation import probes as probe
from ..evaluation import score
from ..files import read_table, write_text
from ..model import Model
from ..parts import Dataset
from ..progress import Progress
from ..recipe import show
from ..recipe.layers import Layered
from ..recipe.tables import Recipe
from ..storage import generations
from ..storage.environment import CAN_CHANGE
from ..storage.run_folder import RunFolder
from ..tensors import Example, Generation
from . import curves, pictures, table
from .attention import AttentionPanel, attention_panel
from .page_table import page_table, row_intervals
from .web_page import render

SHOWN = 200  # test examples in the gallery
AT_ONCE = 20  # of them are seen before somebody asks for more
ENVIRONMENT = {name: str for name in ("command", "written", "python", "platform", "device")} | {
    "versions": dict,
    "threads": int,
}

Load = Callable[[str], Model]  # the model of a step


def try_page(
    recipe: Recipe, folder: RunFolder, dataset: Dataset, found: table.Table, load: Load, progress: Progress
) -> None:
    """The page at the end of a run, which must not be lost to it: whatever goes wrong is said in one line."""
    try:
        write_page(recipe, folder, dataset, found, load, progress)
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        progress.say(
            f"report.html was not written: {reason}; the run is whole, `mmgen report {folder.path}` tries again"
        )


def write_page(
    recipe: Recipe,
    folder: RunFolder,
    dataset: Dataset,
    found: table.Table,
    load: Load,
    progress: Progress,
    shown: int = SHOWN,
) -> Path:
    """`report.html` and `curves/*.svg` in the run's folder, with the table `found`. Raises RunError when no step is
    finished."""
    if not found.steps:
        advice = (
            "go on with `mmgen run`"
            if any(step.evaluate for step in recipe.steps.values())
            else "none of its steps is one (evaluate = false)"
        )
        raise RunError(f"{folder.path}: no row of the table is finished yet; {advice}")
    split = dataset.split(recipe.data.evaluate)
    examples = [split[place * len(split) // min(shown, len(split))] for place in range(min(shown, len(split)))]
    texts = {step: generations.best(folder.step(step)) for step in found.steps}
    with progress.task("report: pictures", len(examples), "pictures") as advance:
        shots, reason = pictures.thumbnails(dataset, examples, advance)
    looks, no_looks = _looks(recipe, examples, texts, load, progress)
    scores = {step: _scores(folder, step, split) for step in found.steps}
    context = {
        "recipe": recipe,
        "table": page_table(found, row_intervals(folder, found, split)),
        "colours": {
            step: plotting.COLOURS.index(colour) for step, colour in plotting.colours(list(recipe.steps)).items()
        },
        "probes": _probes(folder.path / "probes"),
        "plots": _plots(recipe, folder, list(found.steps)),
        "at_once": AT_ONCE,
        "cards": [_card(example, texts, looks[example.id], shots.get(example.id)) for example in examples],
        "total": len(split),
        "gallery_notes": [note for note in (reason, no_looks) if note],
        "metrics": _metrics(scores),
        "data": {
            "inputs": {
                step: [name for name in recipe.inputs if name in recipe.steps[step].inputs] for step in found.steps
            },
            "looks": {name: _compact(each) for name, each in looks.items()},
            "scores": {
                example.id: {step: scores[step].get(example.id, {}) for step in found.steps} for example in examples
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


def _scores(folder: RunFolder, step: str, split: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Example id -> metric -> value."""
    each = {
        name: values for name, values in score.read(folder.step(step)).per_example.items() if len(values) == len(split)
    }
    return {
        example.id: {name: round(value, 1) for name, values in each.items() if (value := values[place]) is not None}
        for place, example in enumerate(split)
    }


def _metrics(scores: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Metrics that are known for every example; those that say yes or no first."""
    values: dict[str, set[float]] = {}
    for each in scores.values():
        for of_example in each.values():
            for name, value in of_example.items():
                values.setdefault(name, set()).add(value)
    found = [{"name": name, "binary": seen == {0.0, 100.0}} for name, seen in values.items()]
    return sorted(found, key=lambda metric: not metric["binary"])


def _looks(
    recipe: Recipe,
    examples: Sequence[Example],
    texts: Mapping[str, Mapping[str, Generation]],
    load: Load,
    progress: Progress,
) -> tuple[dict[str, AttentionPanel], str]:
    """Attention of every step by example id; and why there is none, or ""."""
    looks = {example.id: AttentionPanel() for example in examples}
    reasons: dict[str, None] = {}
    with progress.task("report: attention", len(examples) * len(texts), "texts") as advance:
        for step, written in texts.items():
            try:
                attention_panel(load(step), step, recipe.steps[step].inputs, examples, written, looks, advance)
            except (MmgenError, NotImplementedError, RuntimeError, KeyError) as error:
                reasons[f"No attention for '{step}': {error}"] = None
    return looks, " ".join(reasons)


def _compact(looks: AttentionPanel) -> dict[str, Any]:
    return {name: value for name, value in asdict(looks).items() if name != "words"}


def _plots(recipe: Recipe, folder: RunFolder, steps: Sequence[str]) -> dict[str, str]:
    """Kind -> drawing for the page; beside it a file each."""
    from markupsafe import Markup

    read = {step: curves.read(folder.step(step) / "log.jsonl") for step in recipe.steps}
    plots: dict[str, str] = {}
    for kind in ("learning", "validation"):
        if any(getattr(curve, kind) for curve in read.values()):
            write_text(folder.path / "curves" / f"{kind}.svg", curves.draw(read, kind, alone=True))
            drawing = plotting.inline(
                curves.draw(read, kind, alone=False), list(read), f"{kind} loss of every step by epoch"
            )
            plots[kind] = Markup(drawing)
    return plots


def _probes(folder: Path) -> list[dict[str, Any]]:
    """What probes have found: plots as addresses of images, tables as texts, notes."""
    told = []
    for name, findings in probe.read(folder).items():
        plots = {title: folder / name / Path(file).name for title, file in findings.plots.items()}
        told.append(
            {
                "name": name,
                "plots": [
                    {"title": title, "address": plotting.embedded(drawing), "size": plotting.size(drawing)}
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
    return told


def _card(
    example: Example,
    texts: Mapping[str, Mapping[str, Generation]],
    looks: AttentionPanel,
    shot: tuple[str, int, int] | None,
) -> dict[str, Any]:
    """One test example: its picture, what is read beside it, each step's text, what people wrote."""
    read = {name: units for name, units in looks.units.items() if name not in looks.boxes}
    if not read:
        read = {
            name: [value] for name, value in resolve(example).inputs.items() if isinstance(value, str) and " " in value
        }  # no keys
    questions = [
        {
            "step": step,
            "words": looks.words.get(step) or [written[example.id].text],
            "seen": bool(looks.weights.get("last", {}).get(step)),  # not so where nothing was written
        }
        for step, written in texts.items()
        if example.id in written
    ]
    regions = sum(len(boxes) for boxes in looks.boxes.values()) if looks.weights else 0
    return {
        "id": example.id,
        "shot": shot,
        "regions": regions,
        "read": read,
        "questions": questions,
        "asked": example.targets,
    }
