"""Start steps from published weights or an export: each part selects its tensors; shapes, words and halves are checked.

The files are read when the step starts. Its checkpoint has all weights, so a resumed step needs the files no more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import shorten
from typing import Any

from torch import Tensor

from ..errors import DataError, MmgenError, PluginError
from ..files import read_table
from ..inference.hub import find_folder
from ..model import EMBEDDERS, Model
from ..progress import Progress
from ..recipe.tables import EXPORT, GENERATOR, Recipe, Step
from ..recipe.weight_files import check_export
from ..registry import installed
from ..storage.model_files import INPUTS, read_step, read_vocabularies
from ..storage.published_weights import PublishedWeights, read_published
from ..storage.run_folder import RunFolder
from ..storage.weights import load_state, state

MOST_SHOWN = 400  # letters of names in a line


def load_start(recipe: Recipe, step: str, model: Model, progress: Progress) -> set[str]:
    """Load the published weights of a step into an untrained model, and say what is taken. Returns the names of what
    was loaded, none for another start. Raises DataError, RunError, PluginError."""
    settings, parameters = recipe.steps[step], state(model)
    if (source := settings.weights) is None:
        return set()
    try:
        weights = ExportedWeights(source, recipe, model) if source.startswith(EXPORT) else read_published(source)
        tensors = select_tensors(settings, model, weights)
    except MmgenError as error:
        error.about = ("steps", step, "start")
        raise
    load_state(model, {**parameters, **tensors}, source)
    prefixes = tuple(f"{part}." for part in _parts(settings, model))
    untouched = [key for key in parameters if key.startswith(prefixes) and key not in tensors]
    unused = weights.left_over
    line = f"{step}: {settings.start}: {len(weights) - len(unused)} of {len(weights)} tensors taken"
    progress.say(f"{line}{_list_names('left over', unused)}{_list_names('as built', untouched)}")
    return set(tensors)


def _list_names(what: str, names: Sequence[str]) -> str:
    return f"; {what} {len(names)} ({shorten(', '.join(names), MOST_SHOWN, placeholder=' ...')})" if names else ""


def select_tensors(step: Step, model: Model, weights: PublishedWeights) -> dict[str, Tensor]:
    """The tensors that the parts of a step take from weights, by parameter name. Weights of mmgen, which have the
    model's names, need no conversion. Raises DataError if no tensor or a wrong size matches, and PluginError."""
    parameters, parts, tensors = state(model), _parts(step, model), dict[str, Tensor]()
    names = {id(tensor): name for name, tensor in parameters.items()}
    for part in parts:
        module: Any = model.get_submodule(part)
        own = {key: names[id(tensor)] for key, tensor in module.state_dict(keep_vars=True).items()}
        if isinstance(weights, ExportedWeights) and not weights.fit(part):
            continue
        loaded = {key: weights[f"{part}.{key}"] for key in own if f"{part}.{key}" in weights}
        if not loaded and not isinstance(weights, ExportedWeights):
            loaded = dict(module.published(weights))
        for key, tensor in loaded.items():
            if key not in own:
                raise PluginError(f"{part}: published returns '{key}', which is not one of its parameters")
            if problem := _problem(tensor, own[key], parameters[own[key]]):
                raise DataError(f"'{weights.source}': {part}: '{key}' {problem}")
            tensors[own[key]] = tensor.to(parameters[own[key]].dtype)
    if not tensors:
        raise DataError(
            f"'{weights.source}': none of the {len(weights)} tensors matches a part of this step ({', '.join(parts)}); "
            f"the tensors are named: {', '.join(list(weights)[:3])}"
        )
    return tensors


def _parts(step: Step, model: Model) -> list[str]:
    """The parts of a step that may take weights, by the names of the modules."""
    inputs = [f"{EMBEDDERS}{name}" for name in step.inputs if name in model.inputs]
    heads = [name if name == GENERATOR else f"objectives.{name}" for name in step.objectives]
    return ["backbone", *inputs, *heads]


def _problem(tensor: Tensor, name: str, parameter: Tensor) -> str:
    """Why a tensor cannot become a parameter: another shape, quantised or non-finite values."""
    if tensor.shape != parameter.shape:
        shapes = f"has shape {tuple(tensor.shape)}, but {name} has shape {tuple(parameter.shape)}"
        return f"{shapes}; set the sizes of these weights in the recipe, or use other weights"
    if parameter.is_floating_point() and not tensor.is_floating_point():
        return f"is quantised ({tensor.dtype}) without its scales; use weights that are not quantised"
    return "" if tensor.isfinite().all() else "is not finite (NaN or infinite); the file is damaged"


class ExportedWeights(PublishedWeights):
    """The weights of an export, by the names of mmgen. Raises DataError if the model's words have other numbers than
    those of the export."""

    def __init__(self, source: str, recipe: Recipe, model: Model) -> None:
        check_export(source.removeprefix(EXPORT))
        folder = RunFolder(find_folder(source.removeprefix(EXPORT)))
        exported, file = folder.recipe(installed()), folder.backbone / "tokenizer.json"
        super().__init__(source, read_step(exported, folder, next(iter(exported.steps))))
        ours = getattr(model.backbone.tokenizer, "backend_tokenizer", None)
        if (read_table(file).get("model") if file.exists() else None) != (ours and json.loads(ours.to_str())["model"]):
            raise DataError(
                f"'{source}': its tokenizer differs from that of the recipe's backbone; export it with "
                f'--transformers, and set backbone.weights = "{folder.backbone}"'
            )
        self._folder, self._recipe, self._model = folder.path, recipe, model

    def fit(self, part: str) -> bool:
        """Whether a part's tensors have the same sizes in the export, and mean the same: an input's features, the
        classes of a head."""
        kind, _, name = part.partition(".")
        if part.startswith(EMBEDDERS):
            saved = read_table(self._folder / INPUTS).get(name, {}).get("fingerprint")
            settings = json.loads(json.dumps(self._model.embedders[name].inferred_settings()))
            allowed = getattr(self._recipe.inputs[name], "allow_other_features", False)
            if saved and saved != settings.get("fingerprint") and not allowed:
                return False
        if kind == "objectives":
            ours, theirs = self._model.vocabularies, read_vocabularies(self._folder)
            if any(ours.get(label) != theirs.get(label) for label in self._recipe.objectives[name].required_labels):
                return False
        own = self._model.get_submodule(part).state_dict()
        return all(
            self.data[f"{part}.{key}"].shape == value.shape for key, value in own.items() if f"{part}.{key}" in self
        )
