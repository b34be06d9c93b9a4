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
    default = recipe.default_step
    if default and default in candidates:
        return ChosenStep(default, "the recipe's default_step")
    missed = f"; default_step '{default}' {_unfit(recipe, folder, default)}" if default else ""
    tables = [[name for name in group if name in candidates] for group in groups(recipe)]
    tables = [table for table in tables if table and fitting in (None, *table)]
    peers = tables[0] if tables else [*candidates]
    names = " and ".join(f"'{name}'" for name in peers) if len(peers) <= MOST_NAMES else f"{len(peers)} steps"
    if len(peers) == 1:
        first = "the only one of the first table" if len(candidates) > 1 and not fitting else ""
        return ChosenStep(peers[0], first + missed if first else missed[2:])
    longest = max(reversed(peers), key=lambda name: (len(recipe.chain(name)), len(recipe.steps[name].inputs)))
    scores: dict[str, Mapping[str, float | None]] = {}
    for name in peers:
        with contextlib.suppress(RunError):  # not scored yet, or damaged
            scores[name] = score.read(folder.step(name)).values
    columns = list(dict.fromkeys(column for values in scores.values() for column in values))
    known = {column: [name for name in scores if scores[name].get(column) is not None] for column in columns}
    column = max(columns, key=lambda column: len(known[column]), default=None)  # the first that most steps have
    if column is None or not known[column]:
        return ChosenStep(longest, f"which starts from most steps, since {names} have no scores to compare{missed}")
    sign = -1 if column in columns_with(recipe.judging(peers[0]), "lower_is_better") else 1
    best = max(known[column], key=lambda name: (sign * (scores[name][column] or 0.0), name == longest))
    return ChosenStep(best, f"the best by {column} ({number(scores[best][column])}) of {names}{missed}")


def _unfit(recipe: Recipe, folder: RunFolder, step: str) -> str:
    """Why the default step does not answer."""
    trained = folder.finished(step, "weights.safetensors")
    return f"reads {' and '.join(recipe.steps[step].inputs)}" if trained else "is not trained yet"
