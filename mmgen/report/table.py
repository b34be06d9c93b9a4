"""The table of a run (table.md, terminal): steps, people, chance, the paper; the mean over seeds; notes."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ..configs import MetricConfig
from ..data.datasets import ScoredOn
from ..errors import MmgenError
from ..evaluation import score
from ..evaluation.collapse import collapsed
from ..evaluation.score import reference_scores
from ..examples import LOG_PROBABILITY, Scores
from ..files import write_text
from ..parts import Dataset
from ..progress import number
from ..recipe.tables import Recipe
from ..scoring.intervals import Interval, groups_of, intervals
from ..scoring.table import Cell, Row, ScoreTable
from ..storage import generations
from ..storage.run_folder import RunFolder, differences

PLURAL = {
    "text": "texts",
    "label": "labels",
    "choice": "choices",
    "region": "regions",
    "boxes": "boxes",
}
MOST_COLUMNS = 4  # in a note on scores below chance
log = logging.getLogger("mmgen")


Values = Mapping[str, "float | None"]


def groups(recipe: Recipe) -> list[list[str]]:
    """Groups of steps that share a table, by kind of prediction and data set; texts about [data] come first."""
    steps_by_group: dict[tuple[str, str], list[str]] = {}
    text_steps = [name for name in recipe.steps if recipe.writes(name)]
    for name, step in recipe.steps.items():
        if step.evaluate and name not in text_steps and (predicts := recipe.predicts(name)):
            steps_by_group.setdefault(
                (predicts[1], (recipe.scored_data(name) or recipe.data).model_dump_json()), []
            ).append(name)
    return [steps for steps in (text_steps, *steps_by_group.values()) if steps]


def _table_title(recipe: Recipe, step: str, dataset: Dataset) -> str:
    """The title of a step's table: kind of prediction and data set; empty for texts about the recipe's [data]."""
    predicts = recipe.predicts(step)
    if recipe.writes(step) or predicts is None:
        return ""
    return f"{PLURAL.get(predicts[1], predicts[1])}, data '{data_name(recipe, step, dataset)}'"


def data_name(recipe: Recipe, step: str, dataset: Dataset) -> str:
    """The name of the data set on which a step is scored."""
    return str(dataset.describe().get("name") or (recipe.scored_data(step) or recipe.data).type)


def gather_tables(recipe: Recipe, folder: RunFolder, datasets: ScoredOn) -> list[ScoreTable]:
    """One table per group of steps, with the finished steps."""
    finished = [name for steps in groups(recipe) for name in steps if folder.finished(name)]
    rows = {name: with_remarks(score.read(folder.step(name)), name, folder.step(name)) for name in finished}
    return tables_of_scores(recipe, rows, datasets, reference_scores(recipe, rows, datasets, folder.path))


def tables_of_scores(
    recipe: Recipe,
    rows: Mapping[str, Scores],
    datasets: ScoredOn,
    references: Mapping[str, Mapping[str, Scores]],
) -> list[ScoreTable]:
    """One table per group of steps, from the scores of steps. `references`: see `reference_scores`."""
    tables = []
    for steps in groups(recipe):
        if scored := {step: rows[step] for step in steps if step in rows}:
            dataset = datasets.dataset_of(steps[0])
            examples = datasets.scored_by(steps[0])
            tables.append(_build_table(recipe, scored, dataset, groups_of(examples), references[next(iter(scored))]))
    return tables


def _build_table(
    recipe: Recipe,
    scores: Mapping[str, Scores],
    dataset: Dataset,
    images: Sequence[str],
    references: Mapping[str, Scores],
) -> ScoreTable:
    """The table of these steps, with the rows of people, of chance and of the paper, and notes on what they say."""
    step = next(iter(scores))
    metrics, steps = recipe.judging(step), {name: of_step.values for name, of_step in scores.items()}
    columns = tuple(dict.fromkeys(column for values in steps.values() for column in values))
    notes = dict.fromkeys(note for of_step in scores.values() for note in of_step.notes)
    notes.update(dict.fromkeys(_untrained_notes(recipe, scores)))
    if not metrics:
        notes["no scores: the recipe has no [metrics.NAME] for these steps"] = None
    reference_rows = _reference_rows(references, notes, columns)
    published = _published_rows(dataset, notes)
    lower = columns_with(metrics, "lower_is_better")
    notes.update(dict.fromkeys(_below_chance(steps, reference_rows.get("chance", {}), lower)))
    rows = [
        *(Row((name,), cells_of(values, intervals(scores[name], metrics, images))) for name, values in steps.items()),
        *(Row((label,), cells_of(values), "reference") for label, values in reference_rows.items()),
        *(Row((label,), cells_of(values), "published") for label, values in published.items()),
    ]
    return ScoreTable(columns, tuple(rows), tuple(notes), _table_title(recipe, step, dataset), lower)


def cells_of(values: Values, spans: Mapping[str, Interval] | None = None) -> dict[str, Cell]:
    """The values that are known, with their intervals."""
    return {
        column: Cell(value, interval=(spans or {}).get(column)) for column, value in values.items() if value is not None
    }


def _untrained_notes(recipe: Recipe, steps: Iterable[str]) -> Iterator[str]:
    """A note on every step that trains nothing."""
    for step in steps:
        trained_by, options = recipe.trained_by(step), recipe.decoding_of(step).model_dump()
        if step != trained_by:
            changes = "; ".join(differences(recipe.decoding_of(trained_by).model_dump(), options))
            yield f"{step}: the weights of {trained_by}" + f" with another decoding ({changes})" * bool(changes)


def columns_with(
    metrics: Mapping[str, MetricConfig], quality: Literal["lower_is_better", "of_all_texts"]
) -> frozenset[str]:
    """The columns of these metrics with a quality, by both names that a column may have: "column", "METRIC.column"."""
    named = [(metric, column) for metric, config in metrics.items() for column in getattr(config, quality)]
    return frozenset(name for metric, column in named for name in (column, f"{metric}.{column}"))


def _published_rows(dataset: Dataset, notes: dict[str, None]) -> Mapping[str, Values]:
    """The paper's scores. Adds a note that names the paper."""
    described = dataset.describe()
    if "published_from" in described:
        notes[f"published rows: {described['published_from']}"] = None
    return described.get("published", {})


def with_remarks(scores: Scores, step: str, place: Path) -> Scores:
    """The scores of a step, with the `remarks` on its texts as notes."""
    return replace(scores, notes=(*scores.notes, *remarks(step, place)))


def remarks(label: str, place: Path) -> tuple[str, ...]:
    """Remarks if the texts in a folder are nearly all the same or empty, and if their scores are not log-probabilities.
    `label`: that of the row."""
    try:
        texts = [*generations.best(place).values()] if (place / generations.GENERATIONS).exists() else []
    except MmgenError:  # reported by code that needs the texts
        return ()
    kinds = {text.score_kind for text in texts} - {LOG_PROBABILITY}
    what = [collapsed([text.text for text in texts]), *(f"the score of a text is a {kind}" for kind in kinds)]
    return tuple(f"{label}: {remark}" for remark in what if remark)


def average_seeds(run_table: ScoreTable, folder: RunFolder) -> ScoreTable | None:
    """The table over a run's seeds: the run and its neighbours that differ only in the seed. None for a single seed.

    A row has the mean and standard deviation over all seeds that have finished the step. A note that not all of these
    seeds have names its seeds.
    """
    seeds = folder.seeds()
    if len(seeds) < 2:
        return None
    seeds_by_row: dict[str, list[int]] = {}
    seeds_by_note: dict[str, dict[str, list[int]]] = {}  # note -> row -> seeds
    chance = {column: cell.value for column, cell in run_table.of("reference").get("chance", {}).items()}

    def average(step: str) -> dict[str, Cell]:
        scores_by_seed = {
            seed: scores
            for seed, seed_folder in sorted(seeds.items())
            if (scores := _read_seed(seed_folder, step)) is not None
        }
        seeds_by_row[step] = [*scores_by_seed]
        for seed, scores in scores_by_seed.items():
            below = _below_chance({step: scores.values}, chance, run_table.lower)
            for note in (*scores.notes, *remarks(step, seeds[seed].step(step)), *below):
                seeds_by_note.setdefault(note, {}).setdefault(step, []).append(seed)
        rows = [scores.values for scores in scores_by_seed.values()]
        return over_seeds(rows)

    steps = {name: Row((name,), average(name)) for name in run_table.of("step")}
    of_some = {
        note: sorted(set().union(*seeds_by_label.values()))
        for note, seeds_by_label in seeds_by_note.items()
        if all(those != seeds_by_row[step] for step, those in seeds_by_label.items())
    }
    notes = (
        describe_seeds(seeds_by_row),
        *(note for note in run_table.notes if note not in of_some),
        *(f"seed{'s' * (len(of) > 1)} {', '.join(map(str, of))}: {note}" for note, of in of_some.items()),
    )
    rest = (row for row in run_table.rows if row.kind != "step")
    return replace(run_table, rows=(*steps.values(), *rest), notes=notes)


def _read_seed(folder: RunFolder, step: str) -> Scores | None:
    """The scores of a step of a seed, or None. Damaged scores are logged and left out."""
    try:
        return score.read(folder.step(step)) if folder.finished(step) else None
    except MmgenError as error:
        log.warning("%s; this run is left out of the results over seeds", error)
        return None


def describe_seeds(seeds_by_row: Mapping[str, Sequence[int]]) -> str:
    """A note on the seeds over which the rows are averaged."""
    seeds_of = {name: ", ".join(map(str, seeds)) for name, seeds in seeds_by_row.items()}
    same_seeds = len(set(seeds_of.values())) == 1
    return "mean ± standard deviation over seeds" + (
        f" {next(iter(seeds_of.values()))}"
        if same_seeds
        else ": " + "; ".join(f"{name} {seeds}" for name, seeds in seeds_of.items())
    )


def over_seeds(rows: Sequence[Values]) -> dict[str, Cell]:
    """Column -> mean and sample standard deviation of the known values of all seeds; of one seed its value."""
    columns = dict.fromkeys(column for row in rows for column in row)
    known = {column: [value for row in rows if (value := row.get(column)) is not None] for column in columns}
    return {
        column: Cell(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)
        for column, values in known.items()
        if values
    }


def write_tables(recipe: Recipe, folder: RunFolder, datasets: ScoredOn) -> list[tuple[ScoreTable, ScoreTable | None]]:
    """Write `table.md` to the run's folder, and the table over seeds to the folder of all seeds. Returns the run's
    tables, each with the one over seeds."""
    run_tables = gather_tables(recipe, folder, datasets)
    seed_tables = [average_seeds(run_table, folder) for run_table in run_tables]
    for path, tables in ((folder.path, run_tables), (folder.path.parent, [*filter(None, seed_tables)])):
        if tables:
            write_text(path / "table.md", "\n\n".join([f"# {recipe.name}", *map(str, tables)]) + "\n")
    return [*zip(run_tables, seed_tables, strict=True)]


def _reference_rows(
    references: Mapping[str, Scores], notes: dict[str, None], columns: Sequence[str]
) -> dict[str, Values]:
    """The rows of people's texts and of chance, from every metric's scores of references."""
    people: dict[str, float | None] = {}
    chance: dict[str, float | None] = {}
    for metric_name, scores in references.items():
        notes.update(dict.fromkeys(scores.notes))
        for name, value in scores.values.items():
            plain = name.removeprefix("chance_")  # the column of the metric's own scores
            column = f"{metric_name}.{plain}" if f"{metric_name}.{plain}" in columns else plain
            (chance if name.startswith("chance_") else people)[column] = value
    rows = (("people", people), ("chance", chance))
    return {label: values for label, values in rows if any(value is not None for value in values.values())}


def _below_chance(rows: Mapping[str, Values], chance: Values, lower: frozenset[str]) -> Iterator[str]:
    """A note for every row with scores worse than chance. `lower`: the columns whose lowest value is the best."""
    for label, values in rows.items():
        worse = [
            f"{column} {number(value)} is {'above' if column in lower else 'below'} chance, {number(limit)}"
            for column, limit in chance.items()
            if isinstance(value := values.get(column), int | float) and isinstance(limit, int | float)
            if (value > limit if column in lower else value < limit) and number(value) != number(limit)
        ]
        if worse:
            rest = len(worse) - MOST_COLUMNS
            more = f"; and {rest} more column{'s' * (rest > 1)}" * (rest > 0)
            yield f"{label}: {'; '.join(worse[:MOST_COLUMNS])}{more}"
