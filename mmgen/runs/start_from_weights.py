"""Start steps from published weights or an export: each part selects its tensors; shapes, words and halves are checked.

The files are read twice: before the first step trains, for errors and a line about what is taken, and when the step
starts, in the process that trains it. The step's checkpoint has all weights, so a resumed step needs the files no more.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from ..errors import DataError, MmgenError, PluginError
from ..files import read_table
from ..inference.hub import find_folder
from ..model import EMBEDDERS, Model
from ..parts import Part, has_all
from ..progress import Progress
from ..recipe.layers import Layered
from ..recipe.tables import EXPORT, GENERATOR, Recipe
from ..recipe.weight_files import check_export
from ..storage.exports import BACKBONE, read_config, read_vocabularies, read_weights
from ..storage.published_weights import PublishedWeights, read_published
from ..storage.run_folder import RunFolder
from ..storage.weights import load_state, state

TOKENIZER = "tokenizer.json"
MOST_SHOWN = 8  # names in a line
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)  # not quantised


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


def check_starts(
    recipe: Recipe, steps: Sequence[str], model: Model, folder: RunFolder, progress: Progress, layers: Layered
) -> None:
    """Say what those steps take that start from published weights and have not begun. `layers`: the places of the
    recipe's keys, for errors. Raises DataError, RunError, PluginError."""
    read = functools.cache(_read_weights)
    for name in steps:
        source = recipe.steps[name].weights
        if source is None or folder.begun(name):
            continue
        try:
            weights = read(source)
            weights.read.clear()
            taken = select_tensors(recipe, name, model, weights)
        except MmgenError as error:
            raise type(error)(f"{layers.opening(('steps', name, 'start'))}{error}") from None
        prefixes = tuple(owner.prefix for owner in step_parts(recipe, name, model))
        untouched = [key for key in state(model) if key.startswith(prefixes) and key not in taken]
        unused = weights.left_over
        line = f"{name}: {recipe.steps[name].start}: {len(weights) - len(unused)} of {len(weights)} tensors taken"
        progress.say(f"{line}{_list_names('left over', unused)}{_list_names('as built', untouched)}")


def _list_names(what: str, names: Sequence[str]) -> str:
    shown = ", ".join([*names[:MOST_SHOWN], *["..."] * (len(names) > MOST_SHOWN)])
    return f"; {what} {len(names)} ({shown})" if names else ""


def load_start(recipe: Recipe, step: str, model: Model, folder: RunFolder) -> set[str]:
    """Load the published weights of a step into an untrained model; the names of what was loaded, none if the step has
    a checkpoint, which has all weights. Raises DataError, RunError, PluginError."""
    source = recipe.steps[step].weights
    if source is None or folder.begun(step):
        return set()
    tensors = select_tensors(recipe, step, model, _read_weights(source))
    load_state(model, {**state(model), **tensors}, source)
    return set(tensors)


def select_tensors(recipe: Recipe, step: str, model: Model, weights: PublishedWeights) -> dict[str, Tensor]:
    """The tensors that the parts of a step take from weights, by parameter name. Weights of mmgen, which have the
    model's names, need no conversion. Raises DataError if no tensor or a wrong size matches, and PluginError."""
    if isinstance(weights, ExportedWeights):
        _check_tokenizer(weights, model)
    parameters, parts = state(model), step_parts(recipe, step, model)
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
        _refuse_half_layers(owner, loaded, parameter_of_key, weights)
    if not tensors:
        first_names = ", ".join(list(weights)[:3])
        raise DataError(
            f"'{weights.source}': none of the {len(weights)} tensors matches a part of this step "
            f"({', '.join(owner.name for owner in parts)}); the tensors are named: {first_names}"
        )
    return tensors


def _refuse_half_layers(
    owner: StepPart, loaded: Iterable[str], parameter_of_key: Mapping[str, str], weights: PublishedWeights
) -> None:
    """Raises DataError for a layer of which the weights have only the weight or only the bias."""
    taken = {parameter_of_key[key] for key in loaded}
    for layer in dict.fromkeys(key.rpartition(".")[0] for key in loaded):
        keys = {key: owner.prefix + key for key in (f"{layer}.weight", f"{layer}.bias") if key in parameter_of_key}
        present = [name for key, name in keys.items() if parameter_of_key[key] in taken]
        has_all(present, [*keys.values()], f"'{weights.source}': {owner}: {owner.prefix}{layer}")


class ExportedWeights(PublishedWeights):
    """The weights of an export, by the names of mmgen.

    folder        the export
    config        its config.json
    vocabularies  label -> the classes of its heads
    """

    def __init__(self, source: str, folder: Path) -> None:
        self.folder, self.config, self.vocabularies = folder, read_config(folder), read_vocabularies(folder)
        super().__init__(source, read_weights(folder, self.config["encoder_prefix"]))

    def shape(self, name: str) -> torch.Size:
        """The shape of a tensor, which does not count as read."""
        return self._tensors[name].shape


def _read_weights(source: str) -> PublishedWeights:
    if not source.startswith(EXPORT):
        return read_published(source)
    check_export(source.removeprefix(EXPORT))
    return ExportedWeights(source, find_folder(source.removeprefix(EXPORT)))


def _check_tokenizer(weights: ExportedWeights, model: Model) -> None:
    """Raises DataError if the model's words have other numbers than those of the export."""
    with TemporaryDirectory() as folder:
        model.backbone.save(Path(folder))
        files = [place / TOKENIZER for place in (weights.folder / BACKBONE, Path(folder))]
        words = [read_table(file).get("model") if file.exists() else None for file in files]
    if words[0] != words[1]:
        raise DataError(
            f"'{weights.source}': its tokenizer differs from that of the recipe's backbone; set backbone.weights = "
            f'"{weights.folder / BACKBONE}"'
        )


def _fits(owner: StepPart, recipe: Recipe, model: Model, weights: ExportedWeights) -> bool:
    """Whether a part's tensors have the same sizes in an export, and mean the same: an input's features, the classes of
    a head."""
    name = owner.prefix.removesuffix(".").partition(".")[2]
    if owner.kind == "embedder":
        saved = weights.config["inputs"].get(name, {}).get("fingerprint")
        allowed = getattr(recipe.inputs[name], "allow_other_features", False)
        settings = json.loads(json.dumps(model.embedders[name].inferred_settings()))
        if saved is not None and saved != settings.get("fingerprint") and not allowed:
            return False
    labels = recipe.objectives[name].required_labels if owner.kind == "objective" else ()
    if any(model.vocabularies.get(label) != weights.vocabularies.get(label) for label in labels):
        return False
    shapes = {owner.prefix + key: tensor.shape for key, tensor in owner.module.state_dict().items()}
    return all(weights.shape(key) == shape for key, shape in shapes.items() if key in weights)


def step_parts(recipe: Recipe, step: str, model: Model) -> list[StepPart]:
    """The parts of a step that may take published weights."""
    settings = recipe.steps[step]
    parts = [StepPart("the backbone", "backbone", "backbone.", model.backbone)]
    for name in settings.inputs:
        if name in model.inputs:
            parts.append(StepPart(f"input '{name}'", "embedder", f"{EMBEDDERS}{name}.", model.embedders[name]))
    for name in settings.objectives:
        if name == GENERATOR:
            parts.append(StepPart("the generator", GENERATOR, "generator.", model.generator))
        else:
            parts.append(StepPart(f"objective '{name}'", "objective", f"objectives.{name}.", model.objective(name)))
    return parts


def _check_tensor(owner: StepPart, name: str, tensor: Tensor, parameter: Tensor, weights: PublishedWeights) -> Tensor:
    """The tensor with the dtype of `parameter`. Raises DataError for another shape, quantised or non-finite values."""
    tensor_name = weights.name_of(tensor)
    problem = ""
    if tensor.shape != parameter.shape:
        problem = (
            f"has shape {tuple(tensor.shape)}, but {name} has shape {tuple(parameter.shape)}; set the sizes of these "
            "weights in the recipe, or use other weights"
        )
    elif tensor.dtype != parameter.dtype and not (parameter.is_floating_point() and tensor.dtype in FLOATS):
        problem = f"is quantised ({tensor.dtype}) without its scales; use weights that are not quantised"
    elif tensor.is_floating_point() and not tensor.isfinite().all():
        problem = "is not finite (NaN or infinite); the file is damaged"
    if problem:
        shown = f"'{tensor_name}'" if tensor_name else "the converted tensor"
        raise DataError(f"'{weights.source}': {owner}: {shown} {problem}")
    return tensor.to(parameter.dtype)
