"""`mmgen compare`: the scores of several runs, the differences between them, and the settings that differ."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..evaluation import score
from ..files import read_table
from ..progress import html_table, table
from ..storage.run_folder import RunFolder, differences
from .compare_intervals import METHOD
from .compare_intervals import differences as differences_between
from .short_paths import tell_apart
from .table import Values, cell, describe_seeds, spread

NAMED = ("inputs", "objectives", "steps", "metrics")  # tables of a recipe whose tables have names


@dataclass(frozen=True)
class RunComparison:
    """What `compare` gives; `str()` is the output of `mmgen compare`.

    runs      the labels of the runs
    sections  tables, as rows of cells whose first is the header, and notes
    scores    run -> step -> score -> its value, or mean and deviation
    """

    runs: tuple[str, ...]
    sections: tuple[list[list[str]] | str, ...]
    scores: Mapping[str, Mapping[str, Values]]

    def __repr__(self) -> str:
        return f"<RunComparison of {', '.join(self.runs)}>"

    def __str__(self) -> str:
        return "\n\n".join(part if isinstance(part, str) else table(part, texts=2) for part in self.sections)

    def _repr_html_(self) -> str:
        return "\n".join(
            f"<pre>{escape(part)}</pre>" if isinstance(part, str) else html_table(part) for part in self.sections
        )


def compare(paths: Sequence[Path]) -> RunComparison:
    """Compare runs: tables with a row per step and run (one table for steps with the same scores), the difference of
    every run from the first with intervals, and the settings that differ.

    A path is a run's folder, or the folder of its seeds; seeds are shown as mean and standard deviation. Raises
    RunError.
    """
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise RunError("compare: duplicate run; name each run once")
    runs = {label: _runs_of_seeds(path) for label, path in zip(tell_apart(paths), paths, strict=True)}
    rows = {label: _scores_by_step(folders) for label, folders in runs.items()}
    tables = [_format_comparison(steps, columns, rows) for steps, columns in _group_steps(rows)]
    difference_tables = _difference_tables(runs, rows)
    recipes = {label: _compared_settings(folders[0]) for label, folders in runs.items()}
    first = next(iter(recipes))
    notes = [f"{label}: {_describe_seeds(folders, list(rows[label]))}" for label, folders in runs.items()]
    for label, recipe in list(recipes.items())[1:]:
        changes = _changes((first, recipes[first]), (label, recipe))
        if len({runs[run][0].fingerprint() for run in (first, label)}) > 1:
            changes.append("the data sets' examples")
        notes += [f"from {first} to {label}:", *(f"  {change}" for change in changes or ["the same settings"])]
    return RunComparison(tuple(runs), (*tables, *difference_tables, "\n".join(notes)), rows)


def _group_steps(rows: Mapping[str, Mapping[str, Values]]) -> list[tuple[list[str], list[str]]]:
    """Groups of steps that share most of their columns: (steps, columns)."""
    groups: list[tuple[list[str], list[str]]] = []
    for step in dict.fromkeys(step for run_rows in rows.values() for step in run_rows):
        columns = dict.fromkeys(column for run_rows in rows.values() for column in run_rows.get(step, {}))
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


def _format_comparison(
    steps: Sequence[str], columns: Sequence[str], rows: Mapping[str, Mapping[str, Values]]
) -> list[list[str]]:
    lines = [["step", "run", *columns]]
    for step in steps:
        for label, run_rows in rows.items():
            if step in run_rows:
                lines.append([step, label, *(cell(run_rows[step].get(column)) for column in columns)])
    return lines


def _difference_tables(
    runs: Mapping[str, Sequence[RunFolder]], rows: Mapping[str, Mapping[str, Values]]
) -> list[list[list[str]] | str]:
    """Tables of the differences from the first run, and notes on their intervals."""
    first, *rest = runs
    results = {
        (step, label): differences_between(runs[first], runs[label], step)
        for step in rows[first]
        for label in rest
        if step in rows[label]
    }
    tables: list[list[list[str]] | str] = []
    for steps, columns in _group_steps(rows):
        group_results = {key: result for key, result in results.items() if key[0] in steps and result}
        known = [column for column in columns if any(column in result for result in group_results.values())]
        lines = [["step", f"minus {first}", *known]]
        for (step, label), result in group_results.items():
            lines.append([step, label, *(str(result[column]) if column in result else "-" for column in known)])
        tables += [lines] if group_results else []
    without = ", ".join(f"{step} of {label}" for (step, label), result in results.items() if not result)
    notes = [METHOD] * bool(tables) + [
        f"no difference for {without}: the examples of the runs differ or are not available"
    ] * bool(without)
    return [*tables, "\n".join(notes)] if notes else []


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


def _scores_by_step(folders: Sequence[RunFolder]) -> Mapping[str, Values]:
    """Step -> column -> score, or the mean and deviation over seeds."""
    steps = read_table(folders[0].path / "recipe.json", steps=dict)["steps"]
    rows = {}
    for step in steps:
        scores = [score.read(folder.step(step)).values for folder in folders if folder.finished(step)]
        columns = dict.fromkeys(column for values in scores for column in values)
        if scores:
            rows[step] = {column: spread([values.get(column) for values in scores]) for column in columns}
    if not rows:
        raise RunError(f"{folders[0].path}: no step with scores is finished yet; continue with `mmgen run`")
    return rows


def _describe_seeds(folders: Sequence[RunFolder], steps: Sequence[str]) -> str:
    seeds = {read_table(folder.path / "recipe.json", seed=int)["seed"]: folder for folder in folders}
    if len(seeds) == 1:
        return f"seed {next(iter(seeds))}"
    return describe_seeds({step: [seed for seed, folder in seeds.items() if folder.finished(step)] for step in steps})
