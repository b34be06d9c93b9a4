"""A description of a run or an export, for `mmgen info`."""

from __future__ import annotations

from pathlib import Path

from ..progress import table
from ..recipe.tables import NoData
from ..registry import installed
from ..storage.run_folder import RunFolder
from .best_step import best_step


def describe(path: Path) -> str:
    """The steps of a run or an export: what they read and give, and which one answers. Raises RunError."""
    folder = RunFolder(path)
    recipe = folder.recipe(installed())
    kind, profile = ("an export", "") if isinstance(recipe.data, NoData) else ("a run", recipe.profile or "default")
    first = f"{path}: {kind} of '{recipe.name}'" + f", profile {profile}" * bool(profile) + f", seed {recipe.seed}"
    rows = [["step", "reads", "gives", "state"]]
    trained = [name for name in recipe.steps if folder.trained(recipe, name)]
    for name, step in recipe.steps.items():
        predicts = recipe.predicts(name)
        state = "finished" if folder.done(recipe, name) else "trained" if name in trained else "not trained"
        rows.append([name, " and ".join(step.inputs), predicts[1] if predicts and step.evaluate else "nothing", state])
    lines = [first, table(rows, texts=4)]
    if trained:
        chosen = best_step(recipe, folder, trained)
        lines.append(": ".join(filter(None, [f"step '{chosen.name}' answers unless another is named", chosen.reason])))
    return "\n".join(lines)
