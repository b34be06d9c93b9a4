"""Start steps from published weights or an export: each part selects its tensors; checks of shapes, words, files.

The step's folder keeps the selected tensors (`start.safetensors`, until the step is trained), so that a resumed run
does not need the published files, and a record of their source (`start.json`, permanently).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from ..data.part_checks import tensors_problem
from ..errors import DataError, MmgenError, PluginError, RunError
from ..files import file_digest, read_table, write_json
from ..inference.hub import find_folder
from ..model import EMBEDDERS, Model
from ..parts import Part, has_all
from ..progress import Progress
from ..recipe.layers import Layered
from ..recipe.tables import EXPORT, GENERATOR, Recipe
from ..recipe.weight_files import check_export
from ..registry import Qualified, part_calls
from ..storage import start_weights
from ..storage.exports import BACKBONE, read_config, read_weights
from ..storage.exports import read_vocabularies as read_vocabularies_of_export
from ..storage.published_weights import PublishedWeights, read_published
from ..storage.run_folder import RunFolder
from ..storage.weights import load_state, read_tensors, state, write_tensors

TOKENIZER = "tokenizer.json"
MOST_SHOWN = 3  # names in a line
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)  # not quantised


@dataclass(frozen=True)
class StepPart(Qualified):
    """A part of a step that may take weights: its module, and the prefix of its parameter names in the model."""

    prefix: str
    module: Part


def save_starts(
    recipe: Recipe,
    steps: Sequence[str],
    model: Model,
    folder: RunFolder,
    progress: Progress,
    layers: Layered,
) -> None:
    """Save the initial tensors of those steps that start from published weights and have not started. `layers`: the
    places of the recipe's keys, for errors. Raises DataError, RunError, PluginError before any file is written."""
    starts = {}
    weights_by_source: dict[str, PublishedWeights] = {}
    for name in steps:
        source = recipe.steps[name].weights
        started = folder.finished(name, "weights.safetensors") or folder.finished(name, start_weights.WEIGHTS)
        if source is None or started:
            continue
        try:
            weights = weights_by_source[source] = weights_by_source.get(source) or _read_weights(source)
            weights.read.clear()
            _check_same_files(weights, recipe, folder)
            if isinstance(weights, ExportedWeights):
                _check_tokenizer(weights, model)
            tensors = select_tensors(recipe, name, model, weights)
        except MmgenError as error:
            raise type(error)(f"{layers.opening(('steps', name, 'start'))}{error}") from None
        starts[name] = tensors, _start_record(recipe, name, model, weights, tensors)
    for name, (tensors, record) in starts.items():
        path = folder.step(name) / start_weights.RECORD
        write_json(path, record)
        write_tensors(path.with_name(start_weights.WEIGHTS), tensors)
        progress.say(_describe_record(name, record, path))


def load_start(model: Model, folder: RunFolder, step: str) -> set[str]:
    """Load the saved initial tensors of a step into an untrained model; return their names. Raises RunError."""
    path = folder.step(step) / start_weights.WEIGHTS
    tensors = read_tensors(path)[0]
    load_state(model, {**state(model), **tensors}, path)
    return set(tensors)


def select_tensors(recipe: Recipe, step: str, model: Model, weights: PublishedWeights) -> dict[str, Tensor]:
    """The tensors that the parts of a step take from weights, by parameter name. Weights of mmgen, which have the
    model's names, need no conversion. Raises DataError if no tensor or a wrong size matches, and PluginError."""
    weights_of_model, parts = state(model), step_parts(recipe, step, model)
    names = {id(tensor): name for name, tensor in weights_of_model.items()}
    tensors: dict[str, Tensor] = {}
    for owner in parts:
        part_state = owner.module.state_dict(keep_vars=True, prefix=owner.prefix)
        parameter_of_key = {key: names[id(tensor)] for key, tensor in part_state.items()}
        known = [key for key in parameter_of_key if key in weights]
        if isinstance(weights, ExportedWeights):
            sizes = {key: weights_of_model[name].shape for key, name in parameter_of_key.items()}
            fits = _same_meaning(owner, recipe, model, weights) and all(
                weights.shape(key) == sizes[key] for key in known
            )
            loaded = {key: weights[key] for key in known} if fits else {}
        else:
            loaded = {key: weights[key] for key in known} or {
                f"{owner.prefix}{key}": tensor for key, tensor in _published_tensors(owner, weights).items()
            }
        for key, tensor in loaded.items():
            if key not in parameter_of_key:
                raise PluginError(
                    f"{owner}: published returns '{key.removeprefix(owner.prefix)}', which is not one of its parameters"
                )
            tensors[parameter_of_key[key]] = _check_tensor(
                owner, parameter_of_key[key], tensor, weights_of_model[parameter_of_key[key]], weights
            )
        _refuse_half_layers(owner, loaded, parameter_of_key, weights)
    if not tensors:
        first_names = ", ".join(list(weights)[:MOST_SHOWN])
        raise DataError(
            f"'{weights.source}': none of the {len(weights)} tensors matches a part of this step "
            f"({', '.join(owner.name for owner in parts)}); the tensors are named: {first_names}"
        )
    return tensors


def _refuse_half_layers(
    owner: StepPart, loaded: Mapping[str, Tensor], parameter_of_key: Mapping[str, str], weights: PublishedWeights
) -> None:
    """Raises DataError for a layer of which the weights have only the weight or only the bias."""
    taken = {parameter_of_key[key] for key in loaded}
    for layer in dict.fromkeys(key.rpartition(".")[0] for key in loaded):
        keys = [key for kind in ("weight", "bias") if (key := f"{layer}.{kind}") in parameter_of_key]
        has_all([key for key in keys if parameter_of_key[key] in taken], keys, f"'{weights.source}': {owner}: {layer}")


class ExportedWeights(PublishedWeights):
    """The weights of an export, by the names of mmgen.

    folder        the export
    config        its config.json
    vocabularies  label -> the classes of its heads
    """

    def __init__(self, source: str, folder: Path) -> None:
        self.folder, self.config = folder, read_config(folder)
        self.vocabularies = read_vocabularies_of_export(folder)
        tensors = read_weights(folder, self.config["encoder_prefix"])
        paths = sorted({*folder.glob("*.safetensors"), *(folder / BACKBONE).glob("*.safetensors")})
        super().__init__(source, tensors, {str(path.relative_to(folder)): file_digest(path) for path in paths})

    def shape(self, name: str) -> torch.Size:
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


def _same_meaning(owner: StepPart, recipe: Recipe, model: Model, weights: ExportedWeights) -> bool:
    """Whether a part's numbers mean the same in an export: an input's features, and the classes of a head."""
    name = owner.prefix.removesuffix(".").partition(".")[2]
    if owner.kind == "embedder":
        saved = weights.config["inputs"].get(name, {}).get("fingerprint")
        allowed = getattr(recipe.inputs[name], "allow_other_features", False)
        settings = json.loads(json.dumps(model.embedders[name].inferred_settings()))
        return saved is None or saved == settings.get("fingerprint") or allowed
    if owner.kind == "objective":
        labels = recipe.objectives[name].required_labels
        return all(model.vocabularies.get(label) == weights.vocabularies.get(label) for label in labels)
    return True


def step_parts(recipe: Recipe, step: str, model: Model) -> list[StepPart]:
    """The parts of a step that may take published weights."""
    settings = recipe.steps[step]
    parts = [StepPart("the backbone", "backbone", type(recipe.backbone), "backbone.", model.backbone)]
    for name in settings.inputs:
        if name in model.inputs:
            embedder_class = type(recipe.inputs[name])
            parts.append(
                StepPart(f"input '{name}'", "embedder", embedder_class, f"{EMBEDDERS}{name}.", model.embedders[name])
            )
    for name in settings.objectives:
        if name == GENERATOR:
            parts.append(StepPart("the generator", "generator", type(recipe.generator), "generator.", model.generator))
        else:
            config, head = type(recipe.objectives[name]), model.objective(name)
            parts.append(StepPart(f"objective '{name}'", "objective", config, f"objectives.{name}.", head))
    return parts


def _published_tensors(owner: StepPart, weights: PublishedWeights) -> Mapping[str, Tensor]:
    """The tensors that a part selects. Raises PluginError unless they are a mapping of names to tensors."""
    with part_calls(owner, "published"):
        tensors: Mapping[str, Tensor] = owner.module.published(weights)
    if problem := tensors_problem("published returns", tensors):
        raise PluginError(f"{owner}: {problem}")
    return tensors


def _check_tensor(owner: StepPart, name: str, tensor: Tensor, parameter: Tensor, weights: PublishedWeights) -> Tensor:
    """The tensor with the dtype of `parameter`. Raises DataError for another shape, quantised or non-finite values."""
    tensor_name = weights.name_of(tensor)
    source_name = f"'{tensor_name}'" if tensor_name else "the converted tensor"
    if tensor.shape != parameter.shape:
        raise DataError(
            f"'{weights.source}': {owner}: {source_name} has shape {tuple(tensor.shape)}, but {name} has shape "
            f"{tuple(parameter.shape)}; set the sizes of these weights in the recipe, or use other weights"
        )
    if tensor.dtype != parameter.dtype and not (parameter.is_floating_point() and tensor.dtype in FLOATS):
        raise DataError(
            f"'{weights.source}': {owner}: {source_name} is quantised ({tensor.dtype}) without its scales; use weights "
            "that are not quantised"
        )
    if tensor.is_floating_point() and not tensor.isfinite().all():
        raise DataError(
            f"'{weights.source}': {owner}: {source_name} is not finite (NaN or infinite); the file is damaged"
        )
    return tensor.to(parameter.dtype)


def _start_record(
    recipe: Recipe, step: str, model: Model, weights: PublishedWeights, tensors: Mapping[str, Tensor]
) -> dict[str, Any]:
    """The content of `start.json`: the files, the taken tensors, the unused ones, and the parameters without one."""
    prefixes = tuple(owner.prefix for owner in step_parts(recipe, step, model))
    parameter_names = [name for name, tensor in state(model).items() if name.startswith(prefixes)]
    return {
        "start": recipe.steps[step].start,
        "sha256": weights.files,
        "tensors": len(weights),
        "taken": sorted(tensors),
        "left over": weights.left_over,
        "as built": [name for name in parameter_names if name not in tensors],
    }


def _describe_record(step: str, record: Mapping[str, Any], path: Path) -> str:
    """The record as one line."""
    total, unused_names, untouched_names = record["tensors"], record["left over"], record["as built"]
    parts = [f"{step}: {record['start']}: {total - len(unused_names)} of {total} tensors taken"]
    for words, names in (("left over", unused_names), ("as built", untouched_names)):
        if names:
            parts.append(
                f"{words} {len(names)} ({', '.join([*names[:MOST_SHOWN], *['...'] * (len(names) > MOST_SHOWN)])})"
            )
    return f"{'; '.join(parts)}; all names are in {path}"


def _check_same_files(weights: PublishedWeights, recipe: Recipe, folder: RunFolder) -> None:
    """Raises RunError if a step of this run started from the same source with different files."""
    for name, files in start_weights.digests(folder.path).items():
        source = recipe.steps[name].weights if name in recipe.steps else None
        same = source is not None and os.path.realpath(source) == os.path.realpath(weights.source)
        if same and files != weights.files:
            raise RunError(
                f"'{weights.source}': the files have changed since step '{name}' of this run started from them "
                f"({_list_digests(weights.files)} now, {_list_digests(files)} then); restore the files, or use --fresh"
            )


def _list_digests(files: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {digest[:12]}" for name, digest in files.items())
