"""The step of a run that answers if none is named: the best one by the table of those that read the given inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import RunError
from ..evaluation import score
from ..progress import number
from ..recipe.tables import Recipe
from ..registry import installed
from ..report.table import groups
from ..scoring.compare import columns_with
from ..storage.run_folder import RunFolder
from .query import Query
from .query_names import COMMAND_ADVICE, StepNames

MOST_NAMES = 3  # of steps in a reason


@dataclass(frozen=True)
class ChosenStep:
    """The step that answers, and why: "the best by BLEU-4 (43.70) of 'both' and 'both_scratch'"."""

    name: str
    reason: str


def trained_steps(folder: RunFolder, recipe: Recipe) -> list[str]:
    """The steps with weights. Raises RunError if there are none."""
    if trained := [name for name in recipe.steps if folder.trained(recipe, name)]:
        return trained
    raise RunError(f"{folder.path}: no step is trained yet; continue with `mmgen run`")


def choose_step(path: Path, queries: Iterable[Query], writes: bool) -> ChosenStep:
    """The best step for these queries, preferably one that writes texts, or predicts. Raises DataError if no step reads
    exactly the inputs of all queries: what a query lacks, or what is too much, for the step that comes closest."""
    folder = RunFolder(path)
    recipe = folder.recipe(installed())
    suitable = [name for name, step in recipe.steps.items() if step.evaluate and recipe.makes_texts(name) == writes]
    if not suitable and not writes:
        raise RunError(f"{path}: all steps write texts; use `mmgen generate`")
    forms: dict[object, Query] = {}
    for query in queries:
        forms.setdefault(form_of(query), query)
    trained = trained_steps(folder, recipe)
    steps = {name: StepNames(recipe, name) for name in [name for name in trained if name in suitable] or trained}
    bound = {name: [names.bind(query) for query in forms.values()] for name, names in steps.items()}
    exact = [name for name in steps if not any(values.missing or values.unread for values in bound[name])]

    def misfit(name: str) -> tuple[bool, int, int]:
        missing = {values.missing[0] for values in bound[name] if values.missing}
        return bool(missing), sum(bool(values.unread) for values in bound[name]), len(missing)

    if not exact:
        closest = steps[min(reversed(steps), key=misfit)]
        closest.advice = COMMAND_ADVICE
        for query in forms.values():
            closest.bind_exactly(query)  # raises for one of them
    # steps of other tables cannot be compared: prefer more required inputs, then fewer inputs in total
    fitting = max(reversed(exact), key=lambda name: (len(steps[name].required), -len(steps[name].inputs)))
    return best_step(recipe, folder, exact, fitting)


def form_of(query: Query) -> object:
    """What `StepNames.bind` depends on: which names have values."""
    return frozenset((name, value is None) for name, value in query.inputs.items())


def best_step(recipe: Recipe, folder: RunFolder, candidates: Sequence[str], fitting: str | None = None) -> ChosenStep:
    """The recipe's `default_step` if it is a candidate; else the best of the candidates by their table's first metric;
    without scores, the one that starts from the longest chain of steps.

    candidates  trained steps, in the recipe's order; at least one
    fitting     the candidate that fits a query best: only steps of its table are compared; default: the first table's
    """
    default, peers = recipe.default_step, [*candidates]
    if default and default in candidates:
        return ChosenStep(default, "the recipe's default_step")
    for table in reversed(groups(recipe).values()):
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
    return best, f"the best by {column} ({number(scores[best][column])}) of {_names(known[column])}"


def _names(steps: Sequence[str]) -> str:
    return " and ".join(f"'{name}'" for name in steps) if len(steps) <= MOST_NAMES else f"{len(steps)} steps"
