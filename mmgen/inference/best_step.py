"""The step of a run that answers if none is named: the recipe's default step, or the best one by the table."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import RunError
from ..evaluation import score
from ..progress import number
from ..recipe.tables import Recipe
from ..report.table import columns_with, groups
from ..storage.run_folder import RunFolder

MOST_NAMES = 3  # of steps in a reason


@dataclass(frozen=True)
class ChosenStep:
    """The step that answers, and why: "the best by BLEU-4 (43.70) of 'both' and 'both_scratch'"."""

    name: str
    reason: str


def best_step(recipe: Recipe, folder: RunFolder, candidates: Sequence[str], fitting: str | None = None) -> ChosenStep:
    """The recipe's `default_step` if it is a candidate; else the best of the candidates by their table's first metric;
    without scores, the one that starts from the longest chain of steps.

    candidates  trained steps, in the recipe's order; at least one
    fitting     the candidate that fits a query best: only steps of its table are compared; default: the first table's
    """
    default, peers = recipe.default_step, [*candidates]
    if default and default in candidates:
        return ChosenStep(default, "the recipe's default_step")
    for table in reversed(groups(recipe)):
        if (compared := [name for name in table if name in candidates]) and fitting in (None, *compared):
            peers = compared
    name, reason = _best_of(recipe, folder, peers)
    if len(peers) == 1:
        reason = "the only one of the first table" if len(candidates) > 1 and fitting is None else ""
    if default:
        trained = folder.trained(recipe, default)
        why = f"reads {' and '.join(recipe.steps[default].inputs)}" if trained else "is not trained yet"
        reason = ", ".join(filter(None, [reason, f"since default_step '{default}' {why}"]))
    return ChosenStep(name, reason)


def _best_of(recipe: Recipe, folder: RunFolder, steps: Sequence[str]) -> tuple[str, str]:
    """The best of the steps of one table, and why."""
    trained = {name: recipe.trained_by(name) for name in steps}  # before those that only write with its weights
    longest = max(
        reversed(steps),
        key=lambda name: (len(recipe.chain(trained[name])), len(recipe.steps[name].inputs), trained[name] == name),
    )
    scores: dict[str, Mapping[str, float | None]] = {}
    for name in steps:
        with contextlib.suppress(RunError):  # not scored yet, or damaged
            scores[name] = score.read(folder.step(name)).values
    known = {
        column: [name for name in scores if scores[name].get(column) is not None]
        for values in scores.values()
        for column in values
    }
    column = max(known, key=lambda column: len(known[column]), default="")  # the first that most steps have
    if not known.get(column):
        return longest, f"which starts from most steps, since {_names(steps)} have no scores to compare"
    sign = -1 if column in columns_with(recipe.judging(steps[0]), "lower_is_better") else 1
    best = max(known[column], key=lambda name: (sign * (scores[name][column] or 0.0), name == longest))
    value, without = f"{column} ({number(scores[best][column])})", len(steps) - len(known[column])
    if len(known[column]) == 1 < len(steps):
        return best, f"the only step with {value}"
    return best, f"the best by {value} of {_names(known[column])}" + f" ({without} without {column})" * bool(without)


def _names(steps: Sequence[str]) -> str:
    return " and ".join(f"'{name}'" for name in steps) if len(steps) <= MOST_NAMES else f"{len(steps)} steps"
