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
    lines = [f"{path}: a run of '{recipe.name}', profile {recipe.profile or 'default'}, seed {recipe.seed}"]
    if isinstance(recipe.data, NoData):
        lines = [f"{path}: an export of '{recipe.name}', seed {recipe.seed}"]
    rows = [["step", "reads", "gives", "state"]]
    for name, step in recipe.steps.items():
        predicts = recipe.predicts(name)
        state = "trained" if folder.trained(recipe, name) else "not trained"
        state = "finished" if folder.done(recipe, name) else state
        rows.append([name, " and ".join(step.inputs), predicts[1] if predicts and step.evaluate else "nothing", state])
    lines.append(table(rows, texts=4))
    if trained := [name for name in recipe.steps if folder.trained(recipe, name)]:
        chosen = best_step(recipe, folder, trained)
        lines.append(
            f"step '{chosen.name}' answers unless another is named" + (f": {chosen.reason}" if chosen.reason else "")
        )
    return "\n".join(lines)
