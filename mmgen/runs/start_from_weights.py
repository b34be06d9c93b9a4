"""Start steps from published weights or an export: each part selects its tensors; shapes, words and halves are checked.

The files are read when the step starts. Its checkpoint has all weights, so a resumed step needs the files no more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from ..errors import DataError, MmgenError, PluginError
from ..files import read_table
from ..inference.hub import find_folder
from ..model import EMBEDDERS, Model
from ..parts import Part
from ..progress import Progress
from ..recipe.tables import EXPORT, GENERATOR, Recipe
from ..recipe.weight_files import check_export
from ..registry import installed
from ..storage.model_files import INPUTS, read_vocabularies
from ..storage.published_weights import PublishedWeights, read_published
from ..storage.run_folder import RunFolder
from ..storage.step_weights import read_step
from ..storage.weights import load_state, state

TOKENIZER = "tokenizer.json"
MOST_SHOWN = 8  # names in a line


@dataclass(frozen=True)
class StepPart:
    """A part of a step that may take weights: its name in messages, its kind, the prefix of its parameter names in the
    model, and its module."""

    name: str
    kind: str
    prefix: str
    module: Part

    def __str__(self) -> str:
        return self.name


def load_start(recipe: Recipe, step: str, model: Model, progress: Progress) -> set[str]:
    """Load the published weights of a step into an untrained model, and say what is taken. Returns the names of what
    was loaded, none for another start. Raises DataError, RunError, PluginError."""
    source, parameters = recipe.steps[step].weights, state(model)
    if source is None:
        return set()
    try:
        weights = _read_weights(source)
        tensors = select_tensors(recipe, step, model, weights)
    except MmgenError as error:
        error.about = ("steps", step, "start")
        raise
    load_state(model, {**parameters, **tensors}, source)
    prefixes = tuple(owner.prefix for owner in step_parts(recipe, step, model))
    untouched = [key for key in parameters if key.startswith(prefixes) and key not in tensors]
    unused = weights.left_over
    line = f"{step}: {recipe.steps[step].start}: {len(weights) - len(unused)} of {len(weights)} tensors taken"
    progress.say(f"{line}{_list_names('left over', unused)}{_list_names('as built', untouched)}")
    return set(tensors)


def _list_names(what: str, names: Sequence[str]) -> str:
    shown = ", ".join([*names[:MOST_SHOWN], *["..."] * (len(names) > MOST_SHOWN)])
    return f"; {what} {len(names)} ({shown})" if names else ""


def select_tensors(recipe: Recipe, step: str, model: Model, weights: PublishedWeights) -> dict[str, Tensor]:
    """The tensors that the parts of a step take from weights, by parameter name. Weights of mmgen, which have the
    model's names, need no conversion. Raises DataError if no tensor or a wrong size matches, and PluginError."""
    if isinstance(weights, ExportedWeights):
        _check_tokenizer(weights, model)
    parameters, parts = state(model), [*step_parts(recipe, step, model)]
    names = {id(tensor): name for name, tensor in parameters.items()}
    tensors: dict[str, Tensor] = {}
    for owner in parts:
        part_state = owner.module.state_dict(keep_vars=True)
        parameter_of_key = {key: names[id(tensor)] for key, tensor in part_state.items()}
        known = [key for key in part_state if owner.prefix + key in weights]
        if isinstance(weights, ExportedWeights) and not _fits(owner, recipe, model, weights):
            known = []
        loaded = {key: weights[owner.prefix + key] for key in known}
        if not loaded and not isinstance(weights, ExportedWeights):
            loaded = dict(owner.module.published(weights))
        for key, tensor in loaded.items():
            if key not in parameter_of_key:
                raise PluginError(f"{owner}: published returns '{key}', which is not one of its parameters")
            name = parameter_of_key[key]
            tensors[name] = _check_tensor(owner, name, tensor, parameters[name], weights)
    if not tensors:
        first_names = ", ".join(list(weights)[:3])
        raise DataError(
            f"'{weights.source}': none of the {len(weights)} tensors matches a part of this step "
            f"({', '.join(owner.name for owner in parts)}); the tensors are named: {first_names}"
        )
    return tensors


class ExportedWeights(PublishedWeights):
    """The weights of an export, by the names of mmgen.

    folder        the export
    inputs        input -> what its training has found out about its features
    vocabularies  label -> the classes of its heads
    """

    def __init__(self, source: str, folder: RunFolder) -> None:
        recipe = folder.recipe(installed())
        super().__init__(source, read_step(recipe, folder, next(iter(recipe.steps))))
        self.folder, self.inputs = folder, read_table(folder.path / INPUTS)
        self.vocabularies = read_vocabularies(folder.path)

    def shape(self, name: str) -> torch.Size:
        """The shape of a tensor, which does not count as read."""
        return self._tensors[name].shape


def _read_weights(source: str) -> PublishedWeights:
    if not source.startswith(EXPORT):
        return read_published(source)
    check_export(source.removeprefix(EXPORT))
    return ExportedWeights(source, RunFolder(find_folder(source.removeprefix(EXPORT))))


def _check_tokenizer(weights: ExportedWeights, model: Model) -> None:
    """Raises DataError if the model's words have other numbers than those of the export."""
    with TemporaryDirectory() as folder:
        model.backbone.save(Path(folder))
        files = [place / TOKENIZER for place in (weights.folder.backbone, Path(folder))]
        words = [read_table(file).get("model") if file.exists() else None for file in files]
    if words[0] != words[1]:
        raise DataError(
            f"'{weights.source}': its tokenizer differs from that of the recipe's backbone; export it with "
            f'--transformers, and set backbone.weights = "{weights.folder.backbone}"'
        )


def _fits(owner: StepPart, recipe: Recipe, model: Model, weights: ExportedWeights) -> bool:
    """Whether a part's tensors have the same sizes in an export, and mean the same: an input's features, the classes of
    a head."""
    name = owner.prefix.removesuffix(".").partition(".")[2]
    if owner.kind == "embedder":
        saved = weights.inputs.get(name, {}).get("fingerprint")
        allowed = getattr(recipe.inputs[name], "allow_other_features", False)
        settings = json.loads(json.dumps(model.embedders[name].inferred_settings()))
        if saved is not None and saved != settings.get("fingerprint") and not allowed:
            return False
    labels = recipe.objectives[name].required_labels if owner.kind == "objective" else ()
    if any(model.vocabularies.get(label) != weights.vocabularies.get(label) for label in labels):
        return False
    shapes = {owner.prefix + key: tensor.shape for key, tensor in owner.module.state_dict().items()}
    return all(weights.shape(key) == shape for key, shape in shapes.items() if key in weights)


def step_parts(recipe: Recipe, step: str, model: Model) -> Iterator[StepPart]:
    """The parts of a step that may take published weights."""
    yield StepPart("the backbone", "backbone", "backbone.", model.backbone)
    for name in recipe.steps[step].inputs:
        if name in model.inputs:
            yield StepPart(f"input '{name}'", "embedder", f"{EMBEDDERS}{name}.", model.embedders[name])
    for name in recipe.steps[step].objectives:
        if name == GENERATOR:
            yield StepPart("the generator", GENERATOR, "generator.", model.generator)
        else:
            yield StepPart(f"objective '{name}'", "objective", f"objectives.{name}.", model.objective(name))


def _check_tensor(owner: StepPart, name: str, tensor: Tensor, parameter: Tensor, weights: PublishedWeights) -> Tensor:
    """The tensor with the dtype of `parameter`. Raises DataError for another shape, quantised or non-finite values."""
    problem = ""
    if tensor.shape != parameter.shape:
        shapes = f"has shape {tuple(tensor.shape)}, but {name} has shape {tuple(parameter.shape)}"
        problem = f"{shapes}; set the sizes of these weights in the recipe, or use other weights"
    elif parameter.is_floating_point() and not tensor.is_floating_point():
        problem = f"is quantised ({tensor.dtype}) without its scales; use weights that are not quantised"
    elif not tensor.isfinite().all():
        problem = "is not finite (NaN or infinite); the file is damaged"
    if problem:
        shown = weights.name_of(tensor) or "converted tensor"
        raise DataError(f"'{weights.source}': {owner}: '{shown}' {problem}")
    return tensor.to(parameter.dtype)
