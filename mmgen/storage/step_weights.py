"""A step's weights for a model that has more inputs than the step's, or fewer: a run of one step alone builds only the
inputs that are read."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from ..errors import RunError
from ..model import Model
from ..recipe.tables import Recipe
from .run_folder import RunFolder
from .weights import load_state, read_tensors, state


def load_step(
    model: Model, recipe: Recipe, folder: RunFolder, step: str, built: Mapping[str, Tensor] | None = None
) -> None:
    """Give a model the weights of a step. Raises RunError.

    An input that neither the step nor one it starts from reads, and an objective that none of them learns, may be
    missing there: it stays as in `built`, by default as it is. What is there of those that the model has not is left
    out."""
    path = folder.step(step) / "weights.safetensors"
    tensors, about = read_tensors(path)
    if (of := about.get("step", step)) != step:
        raise RunError(
            f"{path}: holds the weights of the step '{of}'; take those of '{step}' from a copy, or delete the file and "
            "run again"
        )
    own = state(model) if built is None else built
    read = inputs_of(recipe, [step])
    learnt = {name for each in recipe.chain(step) for name in recipe.steps[each].objectives}
    parts = {f"embedders.{name}.": name in read for name in recipe.inputs}
    parts |= {f"objectives.{name}.": name in learnt for name in recipe.objectives}
    for prefix, needed in parts.items():
        there, built_here = (any(key.startswith(prefix) for key in each) for each in (tensors, own))
        if built_here and not needed and not there:
            tensors |= {key: tensor for key, tensor in own.items() if key.startswith(prefix)}
        elif not built_here and there:
            tensors = {key: tensor for key, tensor in tensors.items() if not key.startswith(prefix)}
    load_state(model, tensors, path)


def inputs_of(recipe: Recipe, steps: list[str]) -> list[str]:
    """The inputs that these steps and those they start from read, in the recipe's order."""
    read = {name for step in steps for each in recipe.chain(step) for name in recipe.steps[each].inputs}
    return [name for name in recipe.inputs if name in read]
