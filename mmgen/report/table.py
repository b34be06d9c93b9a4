"""The table of a run, or of its seeds: a row a step, the published rows and what people and chance reach beside it."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..configs import MetricConfig
from ..data.checked import references_of
from ..data.datasets import ScoredOn
from ..errors import MmgenError
from ..evaluation import score
from ..evaluation.collapse import collapsed
from ..files import write_text
from ..parts import Dataset
from ..progress import number, table
from ..recipe.tables import Recipe
from ..storage import decodings, generations
from ..storage.run_folder import RunFolder, differences
from ..tensors import Example, Scores

PLURAL = {"text": "texts", "label": "labels", "choice": "choices", "region": "regions", "boxes": "boxes"}
log = logging.getLogger("mmgen")


@dataclass(frozen=True)
class Spread:
    """What several seeds reach: mean, and standard deviation of the sample."""

    mean: float
    deviation: float


Values = Mapping[str, "float | Spread | None"]


@dataclass(frozen=True)
class Table:
    """Rows by label, each column -> value; and how the numbers were made. `again`: step -> decoding -> what the step's
    texts reach that were written again with it. `averaged`: the steps' rows are over several seeds."""

    columns: tuple[str, ...]
    steps: Mapping[str, Values]
    references: Mapping[str, Values]  # what people's texts reach, and chance
    published: Mapping[str, Values]  # labels of the paper's own models are names of steps
    notes: tuple[str, ...]
    again: Mapping[str, Mapping[str, Values]] = field(default_factory=dict)
    averaged: bool = False
    title: str = ""  # what the rows are about, where they are not texts about the recipe's own data

    def rows(self) -> dict[str, Values]:
        """The steps, each before its decodings."""
        labelled_rows: dict[str, Values] = {}
        for step, values in self.steps.items():
            labelled_rows[step] = values
            labelled_rows |= {
                decodings.label(step, name): decoding_values
                for name, decoding_values in self.again.get(step, {}).items()
            }
        return labelled_rows


def groups(recipe: Recipe) -> list[list[str]]:
    """The steps that share a table, by kind of prediction and data set; texts about the recipe's own data first."""
    steps_by_group: dict[tuple[str, str], list[str]] = {}
    own_texts = [name for name in recipe.steps if recipe.writes(name)]
    for name, step in recipe.steps.items():
        if step.evaluate and name not in own_texts and (predicts := recipe.predicts(name)):
            steps_by_group.setdefault(
                (predicts[1], (recipe.own_data(name) or recipe.data).model_dump_json()), []
            ).append(name)
    return [steps for steps in (own_texts, *steps_by_group.values()) if steps]


def _title(recipe: Recipe, step: str, dataset: Dataset) -> str:
    """What the rows of a step's table are about; empty for texts about the recipe's own data."""
    predicts = recipe.predicts(step)
    if recipe.writes(step) or predicts is None:
        return ""
    return f"{PLURAL[predicts[1]]}, data '{data_name(recipe, step, dataset)}'"


def data_name(recipe: Recipe, step: str, dataset: Dataset) -> str:
    """What the data set that a step is scored on is called."""
    return str(dataset.describe().get("name") or (recipe.own_data(step) or recipe.data).type)


def gather_all(recipe: Recipe, folder: RunFolder, datasets: ScoredOn) -> list[Table]:
    """The table of every group, of its steps that are finished."""
    tables = []
    for steps in groups(recipe):
        if finished := [name for name in steps if folder.finished(name)]:
            dataset, examples = datasets.dataset_of(steps[0]), datasets.scored_by(steps[0])
            group_table = _gathered(recipe, folder, finished, dataset, examples)
            tables.append(replace(group_table, title=_title(recipe, steps[0], dataset)))
    return tables


def _gathered(
    recipe: Recipe, folder: RunFolder, names: Sequence[str], dataset: Dataset, examples: Sequence[Example]
) -> Table:
    steps: dict[str, Values] = {}
    notes: dict[str, None] = {}
    for name in names:
        scores = score.read(folder.step(name))
        steps[name] = scores.values
        notes.update(dict.fromkeys(scores.notes))
        notes.update(dict.fromkeys(remarks(name, folder.step(name))))
    again = {name: _again(recipe, folder, name, notes) for name in steps}
    columns = _columns(
        [*steps.values(), *(values for decoding_values in again.values() for values in decoding_values.values())]
    )
    metrics = recipe.judging(names[0])
    if not metrics:
        notes["no scores: the recipe has no [metrics.NAME] that judges these steps"] = None
    references = _references(metrics, examples, notes, columns)
    published = _published(dataset, notes)
    return Table(columns, steps, references, published, tuple(notes), again)


def of_scores(recipe: Recipe, rows: Mapping[str, Mapping[str, Scores]], datasets: ScoredOn) -> list[Table]:
    """The tables of scores that no file holds: step -> label of its row, or of its decoding's -> scores."""
    tables = []
    for steps in groups(recipe):
        scores_by_label = {label: scores for step in steps for label, scores in rows.get(step, {}).items()}
        if scores_by_label:
            notes = {note: None for scores in scores_by_label.values() for note in scores.notes}
            columns = _columns([scores.values for scores in scores_by_label.values()])
            references = _references(recipe.judging(steps[0]), datasets.scored_by(steps[0]), notes, columns)
            dataset = datasets.dataset_of(steps[0])
            published = _published(dataset, notes)
            values = {label: scores.values for label, scores in scores_by_label.items()}
            title = _title(recipe, steps[0], dataset)
            tables.append(Table(columns, values, references, published, tuple(notes), title=title))
    return tables


def _published(dataset: Dataset, notes: dict[str, None]) -> Mapping[str, Values]:
    """The paper's own rows; a note says which paper."""
    described = dataset.describe()
    if "published_from" in described:
        notes[f"published rows: {described['published_from']}"] = None
    return described.get("published", {})


def _again(recipe: Recipe, folder: RunFolder, step: str, notes: dict[str, None]) -> dict[str, Values]:
    """What a step reaches with each decoding that it was written again with; a note says which that is."""
    values_by_decoding: dict[str, Values] = {}
    for place in decodings.folders(folder, step):
        if (place / "scores.json").exists():
            values_by_decoding[place.name] = score.read(place).values
            options = "; ".join(differences(recipe.decoding.model_dump(), decodings.read(place).model_dump()))
            notes[f"[{place.name}]: the same weights with another decoding ({options or 'the same options'})"] = None
            notes.update(dict.fromkeys(remarks(decodings.label(step, place.name), place)))
    return values_by_decoding


def remarks(label: str, place: Path) -> tuple[str, ...]:
    """A line where the texts in a folder say nothing of what they are about; `label`: the row's."""
    try:
        texts = generations.best(place).values() if generations.is_complete(place) else ()
    except MmgenError:  # whoever needs the texts says what is wrong with them
        return ()
    remark = collapsed([text.text for text in texts])
    return (f"{label}: {remark}",) if remark else ()


def over_seeds(run_table: Table, folder: RunFolder) -> Table | None:
    """The table of a run and of the runs beside it that differ in nothing but the seed; None when it is alone.

    A row is of every seed that has finished its step: mean and standard deviation.
    """
    seeds = folder.seeds()
    if len(seeds) < 2:
        return None
    counted: dict[str, list[int]] = {}

    def over(label: str, values: Values, below: Path) -> Values:
        reached = {
            seed: own_values
            for seed, seed_folder in seeds.items()
            if (own_values := values if seed_folder is folder else _reached(seed_folder, folder, below)) is not None
        }
        counted[label] = sorted(reached)
        return {column: spread([row.get(column) for row in reached.values()]) for column in run_table.columns}

    steps, again = {}, {}
    for name, values in run_table.steps.items():
        steps[name] = over(name, values, Path("steps", name))
        again[name] = {
            decoding: over(decodings.label(name, decoding), decoding_values, Path("steps", name, "decodings", decoding))
            for decoding, decoding_values in run_table.again.get(name, {}).items()
        }
    notes = (averaged(counted), *run_table.notes)
    return Table(
        run_table.columns,
        steps,
        run_table.references,
        run_table.published,
        notes,
        again,
        averaged=True,
        title=run_table.title,
    )


def _reached(folder: RunFolder, run_folder: RunFolder, below: Path) -> Values | None:
    """What a neighbour's texts in a folder reach; damage there is said, and costs no more than its share."""
    place, decoding = folder.path / below, run_folder.path / below / "decoding.json"
    if not (place / "scores.json").exists():
        return None
    try:
        if decoding.exists() and decodings.read(place) != decodings.read(decoding.parent):
            return None  # another one under the same name
        return score.read(place).values
    except MmgenError as error:
        log.warning("%s; this run is left out of the results over seeds", error)
        return None


def averaged(counted: Mapping[str, Sequence[int]]) -> str:
    """What the rows are over, from every step's seeds."""
    seeds_of = {name: ", ".join(map(str, seeds)) for name, seeds in counted.items()}
    alike = len(set(seeds_of.values())) == 1
    return "mean ± standard deviation over seeds" + (
        f" {next(iter(seeds_of.values()))}"
        if alike
        else ": " + "; ".join(f"{name} {seeds}" for name, seeds in seeds_of.items())
    )


def spread(values: Sequence[Any]) -> float | Spread | None:
    """Mean and deviation of what is known; the value itself where there is one."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Spread(statistics.fmean(known), statistics.stdev(known))


def write_tables(
    recipe: Recipe, folder: RunFolder, run_tables: Sequence[Table], seed_tables: Sequence[Table | None]
) -> None:
    """`table.md` of the run; and beside the seeds' folders the one over all of them."""
    for path, tables in (
        (folder.path, run_tables),
        (folder.path.parent, [seed_table for seed_table in seed_tables if seed_table]),
    ):
        if tables:
            write_text(path / "table.md", "\n\n".join([f"# {recipe.name}", *map(markdown, tables)]) + "\n")


def markdown(run_table: Table) -> str:
    """Markdown that is read as well in a terminal: rows, then notes on how the numbers were made."""
    published = {f"{label} (published)": values for label, values in run_table.published.items()}
    rows = [*run_table.rows().items(), *run_table.references.items(), *published.items()]
    cells = [[label, *(cell(values.get(column)) for column in run_table.columns)] for label, values in rows]
    title = [f"{run_table.title}:", ""] if run_table.title else []
    return "\n".join([*title, table([["step", *run_table.columns], *cells]), "", *run_table.notes])


def _columns(rows: Sequence[Values]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for values in rows for column in values))


def _references(
    metrics: Mapping[str, MetricConfig], examples: Sequence[Example], notes: dict[str, None], columns: Sequence[str]
) -> dict[str, Values]:
    """What people's texts reach, and chance, where a metric says."""
    people: dict[str, float | None] = {}
    chance: dict[str, float | None] = {}
    for called, config in metrics.items():
        scores = references_of(called, config.build(), examples)
        if scores is None:
            continue
        notes.update(dict.fromkeys(scores.notes))
        for name, value in scores.values.items():
            plain = name.removeprefix("chance_")  # under the column that the metric's scores have
            column = f"{called}.{plain}" if f"{called}.{plain}" in columns else plain
            (chance if name.startswith("chance_") else people)[column] = value
    return {label: values for label, values in (("people", people), ("chance", chance)) if values}


def cell(value: float | Spread | None) -> str:
    if isinstance(value, Spread):
        return f"{number(value.mean)} ± {value.deviation:.2f}"
    return number(value)
