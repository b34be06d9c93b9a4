"""`mmgen compare`: the scores of several runs or of two rows, their differences, the settings that differ."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from ..configs import MetricConfig
from ..errors import MmgenError, RunError, did_you_mean
from ..evaluation import score
from ..examples import Example, Scores
from ..files import read_table, write_text
from ..progress import html_table, table
from ..registry import installed
from ..scoring.compare import difference_row
from ..scoring.intervals import groups_of
from ..scoring.table import Row, ScoreTable
from ..storage.run_folder import RunFolder, differences
from ..storage.scored_examples import ScoredExamples
from .short_paths import tell_apart
from .table import describe_seeds, over_seeds

NAMED = ("inputs", "objectives", "steps", "metrics")  # tables of a recipe whose tables have names
METHOD = (
    "95 % intervals: bootstrap over the examples' images, and over several seeds; p: two-sided, by the same bootstrap, "
    "for corpus scores by approximate randomisation; scores that do not follow from sums over examples have neither"
)


@dataclass(frozen=True)
class RunComparison:
    """What `compare` gives; `str()` is the output of `mmgen compare`.

    tables    a row for each step and run, or for each of the two compared rows; and the differences
    notes     how the differences are computed, the seeds, the settings that differ
    by_score  whether the tables are shown with a line for each score
    """

    tables: tuple[ScoreTable, ...]
    notes: tuple[str, ...]
    by_score: bool = False

    def __repr__(self) -> str:
        return f"<RunComparison: {', '.join(' '.join(row.labels) for row in self.tables[0].rows)}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, digits: int = 2) -> str:
        """The tables as Markdown, then the notes."""
        texts = [table(*self._texts(one, digits)) for one in self.tables]
        return "\n\n".join([*texts, "\n".join(self.notes)])

    def _texts(self, one: ScoreTable, digits: int) -> tuple[list[list[str]], int]:
        return (one.by_score(digits), 1) if self.by_score else (one.texts(digits), len(one.heads))

    def _repr_html_(self) -> str:
        tables = [html_table(self._texts(one, 2)[0]) for one in self.tables]
        return "\n".join([*tables, f"<pre>{escape(chr(10).join(self.notes))}</pre>"])

    def chosen(self, columns: Sequence[str]) -> RunComparison:
        """The comparison of some scores, in the given order. Raises RunError for an unknown score."""
        known = dict.fromkeys(column for one in self.tables for column in one.columns)
        for column in columns:
            if column not in known:
                raise RunError(
                    f"no score is called '{column}'{did_you_mean(column, known)}; scores: {', '.join(known)}"
                )
        kept = [
            replace(one, columns=tuple(column for column in columns if column in one.columns)) for one in self.tables
        ]
        return replace(self, tables=tuple(one for one in kept if one.columns))

    def latex(self, digits: int = 2) -> str:
        """Tables of the package booktabs; the notes become comments."""
        notes = "\n".join(f"% {line}" for note in self.notes for line in note.splitlines())
        return (
            "\n\n".join([r"% needs \usepackage{booktabs}", *(one.latex(digits) for one in self.tables), notes]) + "\n"
        )

    def csv(self) -> str:
        """A line for each score and each difference, not rounded."""
        columns = tuple(dict.fromkeys(column for one in self.tables for column in one.columns))
        rows = tuple(row for one in self.tables for row in one.rows)
        return ScoreTable(columns, rows, heads=self.tables[0].heads).csv()


WRITERS: Mapping[str, Callable[[RunComparison, int], str]] = {
    ".csv": lambda comparison, _: comparison.csv(),
    ".tex": RunComparison.latex,
    ".md": lambda comparison, digits: comparison.text(digits) + "\n",
}


def check_file(path: Path) -> None:
    """Raises RunError for a file that `write` could not write."""
    if path.suffix not in WRITERS:
        raise RunError(f"--out {path}: the name must end in {', '.join([*WRITERS][:-1])} or {[*WRITERS][-1]}")


def write(comparison: RunComparison, path: Path, digits: int = 2) -> None:
    """Write a comparison in the format that the name's ending says. Raises RunError."""
    check_file(path)
    write_text(path, WRITERS[path.suffix](comparison, digits))


def compare(paths: Sequence[Path]) -> RunComparison:
    """Compare runs: tables with a row per step and run (one table for steps with the same scores), the difference of
    every run from the first with intervals, and the settings that differ.

    A path is a run's folder, or the folder of its seeds; seeds are shown as mean and standard deviation. Raises
    RunError.
    """
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise RunError("compare: duplicate run; name each run once")
    runs = {label: _runs_of_seeds(path) for label, path in zip(tell_apart(paths), paths, strict=True)}
    scores = {label: _scores_by_step(folders) for label, folders in runs.items()}
    first, *others = runs
    groups = _group_steps(scores)
    rows = {
        (step, label): over_seeds([of_seed.values for of_seed in scores[label][step]])
        for label in runs
        for step in scores[label]
    }
    tables = [
        _table(
            ("step", "run"),
            columns,
            [Row((step, label), rows[step, label]) for step in steps for label in runs if (step, label) in rows],
        )
        for steps, columns in groups
    ]
    found = {
        (step, label): difference_row((step, label), scores[label][step], scores[first][step], *common)
        if (common := _metrics_and_groups((runs[label][0], step), (runs[first][0], step)))
        else None
        for step in scores[first]
        for label in others
        if step in scores[label]
    }
    for steps, columns in groups:
        if of_group := [row for (step, _), row in found.items() if step in steps and row]:
            tables.append(_table(("step", f"minus {first}"), columns, of_group))
    notes = [METHOD] * any(found.values())
    if without := ", ".join(f"{step} of {label}" for (step, label), row in found.items() if not row):
        notes.append(f"no difference for {without}: the examples of the runs differ or are not available")
    notes += [f"{label}: {_describe_seeds(folders, list(scores[label]))}" for label, folders in runs.items()]
    recipes = {label: _compared_settings(folders[0]) for label, folders in runs.items()}
    for label in others:
        changes = _changes((first, recipes[first]), (label, recipes[label]))
        if len({runs[run][0].fingerprint() for run in (first, label)}) > 1:
            changes.append("the data sets' examples")
        notes += [f"from {first} to {label}:", *(f"  {change}" for change in changes or ["the same settings"])]
    return RunComparison(tuple(tables), tuple(notes))


def compare_rows(path: Path, rows: tuple[str, str]) -> RunComparison:
    """Compare two rows (steps) of a run, over the images and over the seeds that have both: a line for each score, with
    the difference, its interval and p. `path`: as in `compare`. Raises RunError."""
    folders, (one, other) = _runs_of_seeds(path), rows
    known = _scores_by_step(folders)
    for row in rows:
        if row not in known:
            raise RunError(f"{path}: no scores of a step '{row}'{did_you_mean(row, known)}; steps: {', '.join(known)}")
    both = [folder for folder in folders if folder.finished(one) and folder.finished(other)]
    common = _metrics_and_groups((both[0], one), (both[0], other)) if both else None
    if common is None:
        raise RunError(f"{path}: '{one}' and '{other}' are not scored on the same examples, or these are not available")
    scores = [[score.read(folder.step(row)) for folder in both] for row in rows]
    metrics, groups = common
    difference = difference_row(("difference",), scores[0], scores[1], metrics, groups)
    columns = [column for column in scores[0][0].values if column in difference.cells]
    shown = [Row((row,), over_seeds([of.values for of in seeds])) for row, seeds in zip(rows, scores, strict=True)]
    seeds = f"; {describe_seeds({one: _seeds(both)})}" if len(both) > 1 else ""
    about = f"difference: {one} minus {other}, {len(groups)} examples of {len(set(groups))} images{seeds}"
    return RunComparison((_table(("score",), columns, [*shown, difference]),), (about, METHOD), by_score=True)


def _table(heads: tuple[str, ...], columns: Sequence[str], rows: Sequence[Row]) -> ScoreTable:
    """The rows with the columns that any of them has."""
    return ScoreTable(
        tuple(column for column in columns if any(column in row.cells for row in rows)), tuple(rows), heads=heads
    )


def _metrics_and_groups(
    first: tuple[RunFolder, str], second: tuple[RunFolder, str]
) -> tuple[Mapping[str, MetricConfig], list[str]] | None:
    """What the difference of two steps is computed with. None if they are scored on different examples, or if their
    examples are no longer available."""
    examples = [_scored_examples(folder, step) for folder, step in (first, second)]
    if not examples[0] or _targets_by_id(examples[0]) != _targets_by_id(examples[1]):
        return None
    return first[0].recipe(installed()).metrics, groups_of(examples[0])


def _scored_examples(folder: RunFolder, step: str) -> Sequence[Example]:
    try:
        return ScoredExamples(folder.recipe(installed()), folder.path).scored_by(step)
    except MmgenError:  # the table works without examples
        return ()


def _targets_by_id(examples: Sequence[Example]) -> list[tuple[str, str]]:
    """The ids of examples with their references, equal for runs that can be compared."""
    return [(example.id, repr((example.targets, sorted(example.labels.items())))) for example in examples]


def _group_steps(scores: Mapping[str, Mapping[str, Sequence[Scores]]]) -> list[tuple[list[str], list[str]]]:
    """Groups of steps that share most of their columns: (steps, columns)."""
    groups: list[tuple[list[str], list[str]]] = []
    for step in dict.fromkeys(step for of_run in scores.values() for step in of_run):
        of_step = [of_seed for of_run in scores.values() for of_seed in of_run.get(step, ())]
        columns = dict.fromkeys(column for of_seed in of_step for column in of_seed.values)
        group = next((group for group in groups if _share_most(columns, group[1])), None)
        if group is None:
            groups.append(([step], [*columns]))
        else:
            group[0].append(step)
            group[1].extend(column for column in columns if column not in group[1])
    return groups


def _share_most(first: Collection[str], second: Collection[str]) -> bool:
    """Whether two lists of names share more than half of the longer list."""
    return 2 * len(set(first).intersection(second)) > max(len(first), len(second))


def _runs_of_seeds(path: Path) -> list[RunFolder]:
    """The runs of a path, which may differ only in the seed."""
    folders = RunFolder.found_in(path)
    if not folders:
        raise RunError(
            f"{path}: not a run; give a run's folder (runs/<name>/<profile>/seed-<n>) or the folder that contains its "
            "seeds"
        )
    mismatches = [folder for folder in folders if _compared_settings(folder) != _compared_settings(folders[0])]
    if mismatches:
        changes = "; ".join(differences(_compared_settings(folders[0]), _compared_settings(mismatches[0])))
        raise RunError(
            f"{path}: {folders[0].path.name} and {mismatches[0].path.name} differ in more than the seed ({changes}); "
            "compare these runs by their own folders"
        )
    if len({folder.fingerprint() for folder in folders}) > 1:
        raise RunError(
            f"{path}: the seeds were trained on different examples, because the data changed between the runs; compare "
            "these runs by their own folders"
        )
    return folders


def _compared_settings(folder: RunFolder) -> dict[str, Any]:
    """The settings to compare: all but the run's name and seed."""
    return {key: value for key, value in folder.identity().items() if key not in ("seed", "name")}


def _changes(first: tuple[str, dict[str, Any]], second: tuple[str, dict[str, Any]]) -> list[str]:
    """The differences between two recipes, each given with its label. A step, an input, an objective or a metric that
    one of them lacks is named without its keys."""
    before, now = first[1], second[1]
    lines = []
    for key in NAMED:
        names = dict.fromkeys([*before.get(key, {}), *now.get(key, {})])
        owners = {name: [run for run, recipe in (first, second) if name in recipe.get(key, {})] for name in names}
        lines += [f"{key}.{name}: only in {runs[0]}" for name, runs in owners.items() if len(runs) == 1]
        shared = {name for name, runs in owners.items() if len(runs) == 2}
        before, now = (
            {**recipe, key: {name: value for name, value in recipe.get(key, {}).items() if name in shared}}
            for recipe in (before, now)
        )
    return _without_repeats(differences(before, now), len(now["steps"])) + lines


def _without_repeats(changes: Sequence[str], steps: int) -> list[str]:
    """The changes without those that every step inherits from the recipe's [training], which is listed itself."""
    short = [re.sub(r"^steps\.[^.]+\.(?=training\.)", "", change) for change in changes]
    return [
        change
        for change, short_change in zip(changes, short, strict=True)
        if change == short_change or short.count(short_change) <= steps
    ]


def _scores_by_step(folders: Sequence[RunFolder]) -> dict[str, list[Scores]]:
    """Step -> the scores of every seed that has finished it."""
    steps = read_table(folders[0].path / "recipe.json", steps=dict)["steps"]
    scores = {
        step: found
        for step in steps
        if (found := [score.read(folder.step(step)) for folder in folders if folder.finished(step)])
    }
    if not scores:
        raise RunError(f"{folders[0].path}: no step with scores is finished yet; continue with `mmgen run`")
    return scores


def _seeds(folders: Sequence[RunFolder]) -> list[int]:
    return [read_table(folder.path / "recipe.json", seed=int)["seed"] for folder in folders]


def _describe_seeds(folders: Sequence[RunFolder], steps: Sequence[str]) -> str:
    seeds = dict(zip(_seeds(folders), folders, strict=True))
    if len(seeds) == 1:
        return f"seed {next(iter(seeds))}"
    return describe_seeds({step: [seed for seed, folder in seeds.items() if folder.finished(step)] for step in steps})
