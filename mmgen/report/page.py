"""report.html: a self-contained page of a run, which opens from a file without a network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from .. import plotting
from ..data.datasets import ScoredOn
from ..errors import MmgenError, RunError
from ..evaluation import probes as probe
from ..evaluation import score
from ..files import read_table, write_text
from ..model import Model
from ..progress import Progress
from ..recipe import show
from ..recipe.layers import Layered
from ..recipe.tables import GENERATOR, Recipe
from ..storage.environment import CAN_CHANGE
from ..storage.run_folder import RunFolder
from ..tensors import Generation
from . import curves, pictures, table
from .attention import AttentionPanel, attention_panel
from .cards import Gallery, answers_of, card, compact
from .frames import Frame
from .page_table import page_table, row_intervals
from .rendering import step_renderer
from .web_page import render

SHOWN_EXAMPLES = 200  # test examples on a page
AT_ONCE = 20  # cards that are visible before a click on "Show more"
ENVIRONMENT = {name: str for name in ("command", "written", "python", "platform", "device")} | {
    "versions": dict,
    "threads": int,
}

Load = Callable[[str], Model]  # loads the model of a step


def try_page(
    recipe: Recipe,
    folder: RunFolder,
    datasets: ScoredOn,
    tables: Sequence[table.Table],
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
    tables: Sequence[table.Table],
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
    galleries = _make_galleries(recipe, folder, datasets, tables, shown)
    cards, data, notes = _make_cards(recipe, datasets, galleries, load, progress)
    steps = [step for step in recipe.steps if any(step in gallery.steps for gallery in galleries)]
    of_all_texts = {gallery.number: _columns_of_metrics(recipe, gallery, "of_all_texts") for gallery in galleries}
    scores = {
        gallery.number: _scores_by_card(folder, datasets, gallery, of_all_texts[gallery.number])
        for gallery in galleries
    }
    lower = {gallery.number: _columns_of_metrics(recipe, gallery, "lower_is_better") for gallery in galleries}
    table_contexts = [
        page_table(run_table, row_intervals(folder, run_table, datasets.scored_by(next(iter(run_table.steps)))))
        for run_table in tables
    ]
    note_counts = Counter(note for context in table_contexts for note in context["notes"])
    context = {
        "recipe": recipe,
        "tables": table_contexts,
        "shared_notes": [note for note, count in note_counts.items() if count > 1],
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
            for metric in _metrics_of_examples(gallery_scores, number, lower[number])
        ],
        "results": _kinds_of_results(recipe, galleries),
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


def _columns_of_metrics(
    recipe: Recipe, gallery: Gallery, quality: Literal["lower_is_better", "of_all_texts"]
) -> frozenset[str]:
    """The columns with a quality, of the metrics of a gallery's steps."""
    return frozenset().union(*(table.columns_with(recipe.judging(step), quality) for step in gallery.steps))


def _kinds_of_results(recipe: Recipe, galleries: Sequence[Gallery]) -> str:
    """What the steps give: texts, predictions, or both."""
    writes = {recipe.makes_texts(step) for gallery in galleries for step in gallery.steps}
    return " or ".join([*(["text"] if True in writes else []), *(["prediction"] if False in writes else [])])


def _make_galleries(
    recipe: Recipe, folder: RunFolder, datasets: ScoredOn, tables: Sequence[table.Table], shown: int
) -> list[Gallery]:
    """One gallery per data set on which steps are scored, with `shown` examples in total."""
    steps: dict[str, list[str]] = {}
    for name in (step for run_table in tables for step in run_table.steps):
        dataset_config = recipe.scored_data(name)
        steps.setdefault(dataset_config.model_dump_json() if dataset_config else "", []).append(name)
    galleries = []
    for number, names in enumerate(steps.values()):
        split = datasets.scored_by(names[0])
        count = min(max(1, shown // len(steps)), len(split))
        examples = [split[place * len(split) // count] for place in range(count)]
        answers = {step: answers_of(recipe, folder, step) for step in names}
        dataset_name = table.data_name(recipe, names[0], datasets.dataset_of(names[0]))
        renderers = {step: step_renderer(recipe, step) for step in names}
        galleries.append(Gallery(number, dataset_name, tuple(names), examples, len(split), answers, renderers))
    return galleries


def _make_cards(
    recipe: Recipe,
    datasets: ScoredOn,
    galleries: Sequence[Gallery],
    load: Load,
    progress: Progress,
) -> tuple[list[list[dict[str, Any]]], dict[str, Any], list[str]]:
    """The cards of all galleries, those of one picture together, unless boxes are drawn on it; the attention for the
    page's script; and notes on what is missing."""
    cards: dict[object, list[dict[str, Any]]] = {}
    data, notes = {}, []
    for gallery in galleries:
        example_pictures, pictures_note = pictures.find(datasets.dataset_of(gallery.steps[0]), gallery.examples)
        shots: dict[str, tuple[pictures.Shot, ...]] = {}
        unreadable_note = ""
        if example_pictures:
            with progress.task("report: pictures", len(example_pictures), "examples") as advance:
                shots, unreadable_note = pictures.thumbnails(example_pictures, advance)
        panels, attention_note = _attention_panels(recipe, gallery, load, progress)
        for example in gallery.examples:
            example_shots, panel = shots.get(example.id, ()), panels[example.id]
            boxes = example_pictures[example.id][0].boxes if example_shots else None
            example_card = card(recipe, gallery, example, panel, example_shots, boxes)
            alone = not example_shots or example_card["outlines"] or example_card["objects"]
            keys = None if alone else tuple(picture.key for picture in example_pictures[example.id])
            cards.setdefault((gallery.number, keys or example.id), []).append(example_card)
            data[gallery.key(example)] = compact(panel, Frame(example_shots) if example_shots else None)
        renderer_notes = [note for renderer in gallery.renderers.values() for note in renderer.notes]
        notes += [note for note in (pictures_note, unreadable_note, attention_note, *renderer_notes) if note]
    return [*cards.values()], data, [*dict.fromkeys(notes)]


def _scores_by_card(
    folder: RunFolder, datasets: ScoredOn, gallery: Gallery, left_out: Collection[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """Card -> step -> metric -> value, without the columns in `left_out`."""
    split = datasets.scored_by(gallery.steps[0])
    places = {example.id: place for place, example in enumerate(split)}
    scores: dict[str, dict[str, dict[str, float]]] = {gallery.key(example): {} for example in gallery.examples}
    for step in gallery.steps:
        per_example = score.read(folder.step(step)).per_example
        complete_columns = {
            name: values for name, values in per_example.items() if len(values) == len(split) and name not in left_out
        }
        for example in gallery.examples:
            values = {name: column[places[example.id]] for name, column in complete_columns.items()}
            known = {name: round(value, 1) for name, value in values.items() if value is not None}
            scores[gallery.key(example)][step] = known
    return scores


def _metrics_of_examples(
    scores: Mapping[str, Mapping[str, Mapping[str, float]]], gallery: int, lower: Collection[str]
) -> list[dict[str, Any]]:
    """Metrics with values for examples of a gallery; yes-or-no metrics with both values come first."""
    values: dict[str, set[float]] = {}
    for card_scores in scores.values():
        for step_scores in card_scores.values():
            for name, value in step_scores.items():
                values.setdefault(name, set()).add(value)
    metrics = [
        {
            "name": name,
            "gallery": gallery,
            "binary": seen <= {0.0, 100.0} and bool(seen),
            "lower": name in lower,
        }
        for name, seen in values.items()
    ]
    return sorted(metrics, key=lambda metric: len(values[metric["name"]]) != 2 or not metric["binary"])


def _attention_panels(
    recipe: Recipe, gallery: Gallery, load: Load, progress: Progress
) -> tuple[dict[str, AttentionPanel], str]:
    """Attention of every generating step, by example id; and a note on steps without attention, or ""."""
    panels = {example.id: AttentionPanel() for example in gallery.examples}
    reasons: dict[str, None] = {}
    texts = {
        step: {example_id: text for example_id, text in answers.items() if isinstance(text, Generation)}
        for step, answers in gallery.answers.items()
        if recipe.makes_texts(step)
    }
    if not texts:
        return panels, ""
    with progress.task("report: attention", len(gallery.examples) * len(texts), "texts") as advance:
        for step, written in texts.items():
            try:
                inputs = recipe.steps[step].inputs
                attention_panel(load(step), step, inputs, gallery.examples, written, panels, advance)
            except (MmgenError, NotImplementedError, RuntimeError, KeyError) as error:
                reasons[f"No attention for '{step}': {error}"] = None
    return panels, " ".join(reasons)


def _draw_curves(recipe: Recipe, folder: RunFolder) -> dict[str, str]:
    """Kind -> plot for the page; each is also saved as a file."""
    from markupsafe import Markup

    step_curves = {step: curves.read(folder.step(step) / "log.jsonl") for step in recipe.steps}
    plots: dict[str, str] = {}
    for kind in ("learning", "validation"):
        if any(getattr(curve, kind) for curve in step_curves.values()):
            write_text(folder.path / "curves" / f"{kind}.svg", curves.draw(step_curves, kind, alone=True))
            drawing = plotting.inline(
                curves.draw(step_curves, kind, alone=False), list(step_curves), f"{kind} loss of every step by epoch"
            )
            plots[kind] = Markup(drawing)
    return plots


def _probe_results(folder: Path) -> list[dict[str, Any]]:
    """The results of probes: plots as data URIs, tables as texts, notes."""
    results = []
    for name, findings in probe.read(folder).items():
        plots = {title: folder / name / Path(file).name for title, file in findings.plots.items()}
        results.append(
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
    return results
