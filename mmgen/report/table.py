"""The table of a run (table.md, terminal): steps, people, chance, the paper, by data set; mean over seeds; notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..data.datasets import ScoredOn
from ..evaluation import score
from ..evaluation.score import reference_scores
from ..examples import Scores
from ..files import write_text
from ..parts import Dataset
from ..recipe.tables import Recipe
from ..scoring.compare import cells_of, lower_is_better
from ..scoring.intervals import groups_of, intervals
from ..scoring.table import Row, ScoreTable
from ..storage.run_folder import RunFolder


def groups(recipe: Recipe) -> dict[str, list[str]]:
    """Groups of steps that share a table, by kind of prediction and data set; texts about [data] come first."""
    steps_by_group: dict[str, list[str]] = {"": [name for name in recipe.steps if recipe.writes(name)]}
    for name, step in recipe.steps.items():
        if step.evaluate and not recipe.writes(name) and (predicts := recipe.predicts(name)):
            data = (recipe.scored_data(name) or recipe.data).model_dump_json()
            steps_by_group.setdefault(f"{predicts[1]} {data}", []).append(name)
    return {key: steps for key, steps in steps_by_group.items() if steps}


def data_name(recipe: Recipe, step: str, dataset: Dataset) -> str:
    """The name, in tables, of the data set on which a step is scored."""
    return str(dataset.describe().get("name") or (recipe.scored_data(step) or recipe.data).type)


def gather_tables(
    recipe: Recipe, folder: RunFolder, datasets: ScoredOn, seeds: Mapping[int, RunFolder] | None = None
) -> list[ScoreTable]:
    """One table per group of steps, with the finished steps; over several seeds, if given. A row has the mean and
    standard deviation of its seeds; of one seed, intervals."""
    rows = scores_by_seed(recipe, seeds or {recipe.seed: folder})
    rows = {step: by_seed for step, by_seed in rows.items() if folder.finished(step)}
    references = reference_scores(recipe, rows, datasets, folder.path)
    scored = [{step: rows[step] for step in steps if step in rows} for steps in groups(recipe).values()]
    return [_build_table(recipe, scores, datasets, references[next(iter(scores))]) for scores in scored if scores]


def scores_by_seed(recipe: Recipe, seeds: Mapping[int, RunFolder]) -> dict[str, dict[int, Scores]]:
    """Step -> seed -> scores, of the steps that any of these runs has finished."""
    rows = {
        name: {seed: score.read(folder.step(name)) for seed, folder in seeds.items() if folder.finished(name)}
        for name in recipe.steps
    }
    return {name: by_seed for name, by_seed in rows.items() if by_seed}


def _build_table(
    recipe: Recipe,
    scores: Mapping[str, Mapping[int, Scores]],
    datasets: ScoredOn,
    references: Mapping[str, Scores],
) -> ScoreTable:
    """The table of these steps, with the rows of people, of chance and of the paper, and notes on what they say.
    `references`: of each metric."""
    first, seeds = next(iter(scores)), {seed for by_seed in scores.values() for seed in by_seed}
    metrics, dataset, images = recipe.judging(first), datasets.dataset_of(first), groups_of(datasets.scored_by(first))
    known = [of_seed for by_seed in scores.values() for of_seed in by_seed.values()]
    columns = dict.fromkeys(column for of_seed in known for column in of_seed.values)
    described, lower, rows = dataset.describe(), lower_is_better(metrics), list[Row]()
    notes = [describe_seeds(scores)] * (len(seeds) > 1) + [note for of_seed in known for note in of_seed.notes]
    for step, by_seed in scores.items():
        spans = intervals(next(iter(by_seed.values())), metrics, images) if len(seeds) == 1 else {}
        rows.append(Row((step,), cells_of([of_seed.values for of_seed in by_seed.values()], spans)))
    notes += [note for of_metric in references.values() for note in of_metric.notes]
    notes += [f"published rows: {described['published_from']}"] if "published_from" in described else []
    known_values = _reference_rows(references, columns).items()
    rows += [Row((label,), cells_of([of]), "reference") for label, of in known_values if of]
    rows += [Row((label,), cells_of([of]), "published") for label, of in described.get("published", {}).items()]
    _, kind = recipe.predicts(first) or ("", "text")
    kinds = kind if kind.endswith("s") else f"{kind}s"
    title = "" if recipe.writes(first) else f"{kinds}, data '{data_name(recipe, first, dataset)}'"
    return ScoreTable(tuple(columns), tuple(rows), tuple(dict.fromkeys(notes)), title, lower)


def _reference_rows(references: Mapping[str, Scores], columns: Collection[str]) -> dict[str, dict[str, float]]:
    """The known values of people's texts and of chance, from every metric's scores of references."""
    rows: dict[str, dict[str, float]] = {"people": {}, "chance": {}}
    for metric, scores in references.items():
        for name, value in scores.values.items():
            plain = name.removeprefix("chance_")  # the column of the metric's own scores
            column = f"{metric}.{plain}" if f"{metric}.{plain}" in columns else plain
            if value is not None:
                rows["people" if plain == name else "chance"][column] = value
    return rows


def tables_with_seeds(
    recipe: Recipe, folder: RunFolder, datasets: ScoredOn
) -> list[tuple[ScoreTable, ScoreTable | None]]:
    """The tables of a run, each with the one over all seeds that have finished its steps: those of the run and of its
    neighbours that differ only in the seed. None for a single seed."""
    tables, seeds = gather_tables(recipe, folder, datasets), folder.seeds()
    averages = gather_tables(recipe, folder, datasets, seeds) if len(seeds) > 1 else [None] * len(tables)
    return [*zip(tables, averages, strict=True)]


def describe_seeds(seeds_by_row: Mapping[str, Collection[int]]) -> str:
    """A note on the seeds over which the rows are averaged."""
    texts = {name: ", ".join(map(str, seeds)) for name, seeds in seeds_by_row.items()}
    same, *others = dict.fromkeys(texts.values())
    if not others and same.isdecimal():
        return f"seed {same}"
    by_row = "; ".join(f"{name} {seeds}" for name, seeds in texts.items())
    return f"mean ± standard deviation over seeds{f': {by_row}' if others else f' {same}'}"


def write_tables(recipe: Recipe, folder: RunFolder, datasets: ScoredOn) -> list[tuple[ScoreTable, ScoreTable | None]]:
    """Write `table.md` to the run's folder, and the table over seeds to the folder of all seeds. Returns the run's
    tables, each with the one over seeds."""
    tables = tables_with_seeds(recipe, folder, datasets)
    alone, averages = [table for table, _ in tables], [average for _, average in tables if average]
    for path, shown in ((folder.path, alone), (folder.path.parent, averages)):
        if shown:
            write_text(path / "table.md", "\n\n".join([f"# {recipe.name}", *map(str, shown)]) + "\n")
    return tables
