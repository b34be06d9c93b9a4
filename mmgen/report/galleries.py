"""The galleries of the page: which examples are shown, their cards, the score of each card, metrics to sort them by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from ..data.datasets import ScoredOn
from ..errors import MmgenError
from ..evaluation import score
from ..examples import Generation
from ..model import Model
from ..progress import Progress
from ..recipe.tables import Recipe
from ..scoring.table import ScoreTable
from ..storage.run_folder import RunFolder
from . import pictures, table
from .attention import AttentionPanel, attention_panel
from .cards import Gallery, answers_of, card, compact
from .frames import Frame
from .rendering import step_renderer

Load = Callable[[str], Model]  # loads the model of a step


def make_galleries(
    recipe: Recipe, folder: RunFolder, datasets: ScoredOn, tables: Sequence[ScoreTable], shown: int
) -> list[Gallery]:
    """One gallery per data set on which steps are scored, with `shown` examples in total."""
    steps: dict[str, list[str]] = {}
    for name in (step for run_table in tables for step in run_table.of("step")):
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


def make_cards(
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
            except (MmgenError, NotImplementedError, RuntimeError, LookupError) as error:
                reasons[f"No attention for '{step}': {error}"] = None
    return panels, " ".join(reasons)


def scores_by_card(
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


def columns_of_metrics(
    recipe: Recipe, gallery: Gallery, quality: Literal["lower_is_better", "of_all_texts"]
) -> frozenset[str]:
    """The columns with a quality, of the metrics of a gallery's steps."""
    return frozenset().union(*(table.columns_with(recipe.judging(step), quality) for step in gallery.steps))


def metrics_of_examples(
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


def kinds_of_results(recipe: Recipe, galleries: Sequence[Gallery]) -> str:
    """What the steps give: texts, predictions, or both."""
    writes = {recipe.makes_texts(step) for gallery in galleries for step in gallery.steps}
    return " or ".join([*(["text"] if True in writes else []), *(["prediction"] if False in writes else [])])
