"""The weights of a step, read, and loaded into a model with more or fewer inputs; the inputs that steps read.

A run of a single step builds only the inputs that the step reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from torch import Tensor

from ..model import EMBEDDERS, Model
from ..recipe.tables import Recipe
from .run_folder import RunFolder
from .weights import load_state, read_tensors, state


def read_step(recipe: Recipe, folder: RunFolder, step: str) -> dict[str, Tensor]:
    """The tensors of a step, or of the step that has trained its weights. Raises RunError."""
    return read_tensors(folder.weights(recipe.trained_by(step)))[0]


def load_step(
    model: Model, recipe: Recipe, folder: RunFolder, step: str, built: Mapping[str, Tensor] | None = None
) -> None:
    """Load the weights of a step into a model that goes on training. Raises RunError.

    Tensors of an input or an objective that the step and its ancestors neither read nor train are taken from `built`,
    by default the model's, if the file lacks them, and ignored if the model does."""
    tensors, initial = read_step(recipe, folder, step), state(model) if built is None else built
    spare = tuple(prefix for prefix, needed in _parts(recipe, step).items() if not needed)
    known = {key: tensor for key, tensor in tensors.items() if key in initial or not key.startswith(spare)}
    filled = {key: tensor for key, tensor in initial.items() if key.startswith(spare)} | known
    load_state(model, filled, folder.weights(recipe.trained_by(step)))


def parts_in_weights(recipe: Recipe, step: str, tensors: Collection[str]) -> tuple[list[str], list[str]]:
    """The inputs and the objectives of the model that a step's weights belong to, by the names of its tensors."""
    prefixes = {
        prefix
        for prefix, needed in _parts(recipe, step).items()
        if needed or any(name.startswith(prefix) for name in tensors)
    }
    return (
        [name for name in recipe.inputs if f"{EMBEDDERS}{name}." in prefixes],
        [name for name in recipe.objectives if f"objectives.{name}." in prefixes],
    )


def _parts(recipe: Recipe, step: str) -> dict[str, bool]:
    """The prefix of every input's and objective's tensors, and whether the step or its ancestors use it."""
    read = inputs_of(recipe, [step])
    trained = {name for ancestor in recipe.chain(step) for name in recipe.steps[ancestor].objectives}
    return {
        **{f"{EMBEDDERS}{name}.": name in read for name in recipe.inputs},
        **{f"objectives.{name}.": name in trained for name in recipe.objectives},
    }


def inputs_of(recipe: Recipe, steps: Iterable[str]) -> list[str]:
    """The inputs that these steps and their ancestors read, in the recipe's order."""
    read = {name for step in steps for ancestor in recipe.chain(step) for name in recipe.steps[ancestor].inputs}
    return [name for name in recipe.inputs if name in read]
