"""Runs side by side: every step's row of each, and in which settings the runs differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..evaluation import score
from ..files import read_table
from ..progress import table
from ..storage.run_folder import RunFolder, differences
from .labels import tell_apart
from .table import Values, averaged, cell, spread


def compare(paths: Sequence[Path]) -> str:
    """A table with a row for each step and run, and below it what sets every run apart from the first.

    A path is a run's folder, or the folder of its seeds, which stand as mean and standard deviation. Raises RunError.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise RunError("compare: the same run is named twice")
    runs = {label: _seeds(path) for label, path in zip(tell_apart(paths), paths, strict=True)}
    rows = {label: _rows(folders) for label, folders in runs.items()}
    steps = dict.fromkeys(step for each in rows.values() for step in each)
    columns = list(dict.fromkeys(column for each in rows.values() for values in each.values() for column in values))
    lines = [["step", "run", *columns]]
    for step in steps:
        for label, each in rows.items():
            if step in each:
                lines.append([step, label, *(cell(each[step].get(column)) for column in columns)])
    recipes = {label: _recipe(folders[0]) for label, folders in runs.items()}
    first = next(iter(recipes))
    notes = [f"{label}: {_seeds_told(folders, list(rows[label]))}" for label, folders in runs.items()]
    for label, recipe in list(recipes.items())[1:]:
        changes = _said_once(differences(recipes[first], recipe), len(recipe["steps"]))
        if len({runs[each][0].fingerprint() for each in (first, label)}) > 1:
            changes.append("the data sets' examples")
        notes += [f"from {first} to {label}:", *(f"  {change}" for change in changes or ["the same settings"])]
    return "\n".join([table(lines, texts=2), "", *notes])


def _seeds(path: Path) -> list[RunFolder]:
    """The runs that a path stands for, which differ in nothing but the seed."""
    folders = RunFolder.found_in(path)
    if not folders:
        raise RunError(
            f"{path}: no run; give a run's folder (runs/<name>/<profile>/seed-<n>), or the one that its seeds are in"
        )
    others = [folder for folder in folders if _recipe(folder) != _recipe(folders[0])]
    if others:
        changes = "; ".join(differences(_recipe(folders[0]), _recipe(others[0])))
        raise RunError(
            f"{path}: {folders[0].path.name} and {others[0].path.name} differ in more than the seed ({changes}); "
            "compare them one by one"
        )
    if len({folder.fingerprint() for folder in folders}) > 1:
        raise RunError(
            f"{path}: its seeds have learnt from other examples: the data changed between them; compare them one by one"
        )
    return folders


def _recipe(folder: RunFolder) -> dict[str, Any]:
    """What is compared: all settings but the names of the run and its seed."""
    return {key: value for key, value in folder.identity().items() if key not in ("seed", "name")}


def _said_once(changes: Sequence[str], steps: int) -> list[str]:
    """The changes without those that all steps have from the recipe's [training], which is listed itself."""
    short = [re.sub(r"^steps\.[^.]+\.(?=training\.)", "", change) for change in changes]
    return [change for change, own in zip(changes, short, strict=True) if change == own or short.count(own) <= steps]


def _rows(folders: Sequence[RunFolder]) -> Mapping[str, Values]:
    """Step -> column -> what the runs reach."""
    steps = read_table(folders[0].path / "recipe.json", steps=dict)["steps"]
    rows = {}
    for step in steps:
        reached = [score.read(folder.step(step)).values for folder in folders if folder.finished(step)]
        columns = dict.fromkeys(column for values in reached for column in values)
        if reached:
            rows[step] = {column: spread([values.get(column) for values in reached]) for column in columns}
    if not rows:
        raise RunError(f"{folders[0].path}: no row of the table is finished yet; go on with `mmgen run`")
    return rows


def _seeds_told(folders: Sequence[RunFolder], steps: Sequence[str]) -> str:
    seeds = {read_table(folder.path / "recipe.json", seed=int)["seed"]: folder for folder in folders}
    if len(seeds) == 1:
        return f"seed {next(iter(seeds))}"
    return averaged({step: [seed for seed, folder in seeds.items() if folder.finished(step)] for step in steps})
