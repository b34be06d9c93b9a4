"""Load a step's weights into a model with more or fewer inputs; the inputs that steps and those before them read.

A run of a single step builds only the inputs that the step reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor

from ..errors import RunError
from ..model import EMBEDDERS, Model
from ..recipe.tables import Recipe
from .run_folder import RunFolder
from .weights import load_state, read_tensors, state


def load_step(
    model: Model, recipe: Recipe, folder: RunFolder, step: str, built: Mapping[str, Tensor] | None = None
) -> None:
    """Load the weights of a step into a model. Raises RunError.

    An input that neither the step nor its ancestors read, and an objective that none of them trains, may be missing in
    the file: its tensors are taken from `built`, by default the model's. Tensors of inputs and objectives that the
    model does not have are ignored."""
    trained_by = recipe.trained_by(step)
    path = folder.step(trained_by) / "weights.safetensors"
    tensors, about = read_tensors(path)
    if (of := about.get("step", trained_by)) != trained_by:
        raise RunError(
            f"{path}: contains the weights of step '{of}', not of '{trained_by}'; restore the file from a copy, or "
            "delete the file and run again"
        )
    initial = state(model) if built is None else built
    read = inputs_of(recipe, [step])
    trained = {name for ancestor in recipe.chain(step) for name in recipe.steps[ancestor].objectives}
    parts = {f"{EMBEDDERS}{name}.": name in read for name in recipe.inputs}
    parts |= {f"objectives.{name}.": name in trained for name in recipe.objectives}
    for prefix, needed in parts.items():
        in_file, in_model = (any(key.startswith(prefix) for key in part) for part in (tensors, initial))
        if in_model and not needed and not in_file:
            tensors |= {key: tensor for key, tensor in initial.items() if key.startswith(prefix)}
        elif not in_model and in_file:
            tensors = {key: tensor for key, tensor in tensors.items() if not key.startswith(prefix)}
    load_state(model, tensors, path)


def inputs_of(recipe: Recipe, steps: Iterable[str]) -> list[str]:
    """The inputs that these steps and their ancestors read, in the recipe's order."""
    read = {name for step in steps for ancestor in recipe.chain(step) for name in recipe.steps[ancestor].inputs}
    return [name for name in recipe.inputs if name in read]
