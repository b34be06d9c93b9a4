"""`mmgen compare`: the scores of several runs or of two rows, their differences, the settings that differ."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import MmgenError, RunError, unknown
from ..examples import Scores
from ..recipe.paths import with_real_paths
from ..recipe.tables import Recipe
from ..registry import installed
from ..scoring.compare import cells_of, difference_row
from ..scoring.intervals import groups_of
from ..scoring.table import Row, ScoreTable
from ..storage.run_folder import RunFolder, differences
from ..storage.scored_examples import ScoredExamples
from .short_paths import tell_apart
from .table import describe_seeds, scores_by_seed

METHOD = (
    "95 % intervals: bootstrap over the examples' images, and over several seeds; p: two-sided, by the same bootstrap, "
    "for corpus scores by approximate randomisation; scores that do not follow from sums over examples have neither"
)


@dataclass(frozen=True)
class _Run:
    """A run, over its seeds.

    data    the examples that its steps are scored on
    scores  step -> seed -> scores
    """

    label: str
    recipe: Recipe
    data: ScoredExamples
    scores: Mapping[str, Mapping[int, Scores]]

    @classmethod
    def read(cls, path: Path, label: str) -> _Run:
        """The run in a folder, or the runs in the folder of its seeds. Raises RunError."""
        first = next(iter(RunFolder.found_in(path)), RunFolder(path))
        recipe = first.recipe(installed())
        seeds = {recipe.seed: first} if first.path == path else first.seeds()
        scores = scores_by_seed(recipe, seeds)
        if not scores:
            raise RunError(f"{first.path}: no step with scores is finished yet; continue with `mmgen run`")
        return cls(label, recipe, ScoredExamples(recipe, first.path), scores)

    def row(self, step: str, *labels: str) -> Row:
        return Row((step, *labels), cells_of([scores.values for scores in self.scores[step].values()]))

    def examples(self, step: str) -> list[Any]:
        """The ids of a step's examples with their references: of equal ones the scores can be compared. Empty if they
        are no longer available."""
        with contextlib.suppress(MmgenError):
            return [(e.id, e.targets, e.labels) for e in self.data.scored_by(step)]
        return []

    def minus(self, step: str, other: _Run, baseline: str, *labels: str) -> Row:
        """The difference of two steps; without cells if they are not scored on the same examples."""
        if not (examples := self.examples(step)) or examples != other.examples(baseline):
            return Row(labels, {}, "difference")
        ours, theirs = [*self.scores[step].values()], [*other.scores[baseline].values()]
        return difference_row(labels, ours, theirs, self.recipe.metrics, groups_of(self.data.scored_by(step)))


def _settings(recipe: Recipe) -> dict[str, Any]:
    """The settings to compare: all but the run's name and seed; of a step's training what differs from the recipe's."""
    settings = {key: value for key, value in with_real_paths(recipe).identity().items() if key not in ("seed", "name")}
    for step in settings["steps"].values():
        step["training"] = {key: value for key, value in step["training"].items() if value != settings["training"][key]}
    return settings


def compare(paths: Sequence[Path]) -> list[ScoreTable]:
    """Compare runs: a table with a row per step and run, one with the difference of every run from the first, with
    intervals; and as notes of the last table the settings that differ.

    A path is a run's folder, or the folder of its seeds; seeds are shown as mean and standard deviation. Raises
    RunError.
    """
    runs = [_Run.read(path, label) for path, label in zip(paths, tell_apart(paths), strict=True)]
    first, *others = runs
    rows = [(step, run) for step in dict.fromkeys(step for run in runs for step in run.scores) for run in runs]
    rows = [(step, run) for step, run in rows if step in run.scores]
    compared = [(step, run) for step, run in rows if run is not first and step in first.scores]
    differing = [run.minus(step, first, step, step, run.label) for step, run in compared]
    tables = [_table(("step", "run"), [run.row(step, run.label) for step, run in rows])]
    tables += [_table(("step", f"minus {first.label}"), differing)] if differing else []
    notes = [METHOD] * bool(differing)
    notes += ["no difference: the runs' examples differ or are not available"] * any(not row.cells for row in differing)
    notes += [f"{run.label}: {describe_seeds(run.scores)}" for run in runs]
    for run in others:
        changes = differences(_settings(first.recipe), _settings(run.recipe))
        notes += [
            f"from {first.label} to {run.label}:",
            *(f"  {change}" for change in changes or ["the same settings"]),
        ]
    return [*tables[:-1], replace(tables[-1], notes=tuple(notes))]


def compare_rows(path: Path, one: str, other: str) -> ScoreTable:
    """Compare two rows (steps) of a run over images and seeds: a line for each score, with the difference, its interval
    and p. `path`: as in `compare`. Raises RunError."""
    run = _Run.read(path, "")
    for step in (one, other):
        if step not in run.scores:
            raise RunError(f"{path}: no scores of a step: {unknown(step, run.scores)}")
    difference = run.minus(one, run, other, "difference")
    if not difference.cells:
        raise RunError(f"{path}: '{one}' and '{other}' are not scored on the same examples, or these are not available")
    images = groups_of(run.data.scored_by(one))
    about = f"difference: {one} minus {other}, {len(images)} examples of {len({*images})} images"
    seeds = describe_seeds({step: run.scores[step] for step in (one, other)})
    rows = (run.row(one), run.row(other), difference)
    return ScoreTable(tuple(difference.cells), rows, (f"{about}; {seeds}", METHOD), heads=("score",), upright=True)


def _table(heads: tuple[str, ...], rows: Sequence[Row]) -> ScoreTable:
    return ScoreTable(tuple(dict.fromkeys(column for row in rows for column in row.cells)), tuple(rows), heads=heads)
