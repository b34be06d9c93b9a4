"""The step of a run that answers if none is named: the best one by the table of those that read the given inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import RunError
from ..evaluation import score
from ..progress import number
from ..recipe.tables import Recipe
from ..registry import installed
from ..report.table import groups
from ..scoring.compare import lower_is_better
from ..storage.run_folder import RunFolder
from .query import Query
from .query_names import StepNames


@dataclass(frozen=True)
class ChosenStep:
    """The step that answers, and why: "the best by BLEU-4 (43.70) of 'both' and 'both_scratch'"."""

    name: str
    reason: str = ""


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
    forms = {frozenset(query.inputs): query for query in queries}.values()  # one of each
    trained = trained_steps(folder, recipe)
    steps = {name: StepNames(recipe, name) for name in [name for name in trained if name in suitable] or trained}
    bound = {name: [names.bind(query) for query in forms] for name, names in steps.items()}
    exact = [name for name in steps if all(values.exact for values in bound[name])]
    if not exact:

        def misfit(name: str) -> list[bool]:
            return [any(values.missing for values in bound[name]), any(values.unread for values in bound[name])]

        closest = steps[min(reversed(steps), key=misfit)]
        for query in forms:
            closest.bind_exactly(query)  # raises for one of them
    # steps of other tables cannot be compared: prefer more required inputs, then fewer inputs in total
    fitting = max(reversed(exact), key=lambda name: (len(steps[name].required), -len(steps[name].inputs)))
    return best_step(recipe, folder, exact, fitting)


def best_step(recipe: Recipe, folder: RunFolder, candidates: Sequence[str], fitting: str | None = None) -> ChosenStep:
    """The recipe's `default_step` if it is a candidate; else the best of the candidates by their table's first metric;
    without scores, the one that starts from the longest chain of steps.

    candidates  trained steps, in the recipe's order; at least one
    fitting     the candidate that fits a query best: only steps of its table are compared; default: the first table's
    """
    if recipe.default_step and recipe.default_step in candidates:
        return ChosenStep(recipe.default_step, "the recipe's default_step")
    tables = ([name for name in table if name in candidates] for table in groups(recipe).values())
    peers = next((table for table in tables if table and fitting in (None, *table)), candidates)
    scored: dict[str, dict[str, float]] = {}
    for name in peers:
        with contextlib.suppress(RunError):  # not scored yet, or damaged
            values = score.read(folder.step(name)).values
            scored[name] = {column: value for column, value in values.items() if value is not None}
    longest = max(
        reversed(peers), key=lambda name: (len(recipe.chain(recipe.trained_by(name))), len(recipe.steps[name].inputs))
    )
    if len(peers) == 1:
        return ChosenStep(longest)
    columns = next(iter(scored.values()), {})
    column = next((column for column in columns if all(column in known for known in scored.values())), "")
    if not column:
        return ChosenStep(longest, f"which starts from most steps, since {len(peers)} steps have no scores to compare")
    sign = -1 if column in lower_is_better(recipe.judging(peers[0])) else 1
    best = max(scored, key=lambda name: (sign * scored[name][column], name == longest))
    return ChosenStep(best, f"the best by {column} ({number(scored[best][column])}) of {len(scored)} steps")
