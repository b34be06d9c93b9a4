"""Where a step starts from published weights: its parts take what is theirs of them, once, before anything is learnt.

A step's folder keeps what they took (`start.safetensors`, until the step has learnt), so that whoever goes on needs the
publisher's files no more, and of whom it came (`start.json`, for good).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.checked import Owned, part_calls
from ..errors import DataError, MmgenError, PluginError, RunError
from ..files import write_json
from ..model import Model
from ..parts import Part
from ..progress import Progress
from ..recipe.layers import Layered
from ..recipe.tables import GENERATOR, Recipe
from ..storage import kept_start
from ..storage.published import PublishedWeights, read_published
from ..storage.run_folder import RunFolder
from ..storage.weights import load_state, read_tensors, state, write_tensors

SHOWN = 3  # names in a line
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)  # what stands for itself


@dataclass(frozen=True)
class Owner(Owned):
    """A part of a step, as weights are handed out: the module, and what begins its parameters' names in the model."""

    prefix: str
    module: Part


def keep_starts(
    recipe: Recipe,
    steps: Sequence[str],
    model: Model,
    folder: RunFolder,
    progress: Progress,
    layers: Layered,
) -> None:
    """Lay ready what those of these steps start with that start from published weights and have not begun. `layers`:
    where the recipe was written, for errors. Raises DataError, RunError, PluginError; then nothing has been written."""
    found = {}
    read: dict[str, PublishedWeights] = {}
    for name in steps:
        source = recipe.steps[name].weights
        begun = folder.finished(name, "weights.safetensors") or folder.finished(name, kept_start.WEIGHTS)
        if source is None or begun:
            continue
        try:
            weights = read[source] = read.get(source) or read_published(source)
            weights.read.clear()
            _refuse_others(weights, recipe, folder)
            tensors = taken(recipe, name, model, weights)
        except MmgenError as error:
            raise type(error)(f"{layers.opening(('steps', name, 'start'))}{error}") from None
        found[name] = tensors, _record(recipe, name, model, weights, tensors)
    for name, (tensors, record) in found.items():
        path = folder.step(name) / kept_start.RECORD
        write_json(path, record)
        write_tensors(path.with_name(kept_start.WEIGHTS), tensors)
        progress.say(_told(name, record, path))


def load_start(model: Model, folder: RunFolder, step: str) -> set[str]:
    """Give a model that is as it was built what a step starts with; the names that are given. Raises RunError."""
    path = folder.step(step) / kept_start.WEIGHTS
    tensors = read_tensors(path)[0]
    load_state(model, {**state(model), **tensors}, path)
    return set(tensors)


def taken(recipe: Recipe, step: str, model: Model, weights: PublishedWeights) -> dict[str, Tensor]:
    """What the parts of a step take of weights, by the model's names. Names that are the model's own need no part to
    know them: then the weights are of mmgen. Raises DataError where nothing or the wrong size is there, PluginError."""
    own, parts = state(model), owners(recipe, step, model)
    names = {id(tensor): name for name, tensor in own.items()}
    found: dict[str, Tensor] = {}
    for owner in parts:
        kept = owner.module.state_dict(keep_vars=True, prefix=owner.prefix)
        inner = {key: names[id(tensor)] for key, tensor in kept.items()}
        as_ours = {key: weights[key] for key in inner if key in weights}
        given = as_ours or {f"{owner.prefix}{key}": tensor for key, tensor in _asked(owner, weights).items()}
        for key, tensor in given.items():
            if key not in inner:
                raise PluginError(
                    f"{owner}: published gives '{key.removeprefix(owner.prefix)}', which is none of its parameters"
                )
            found[inner[key]] = _fitting(owner, inner[key], tensor, own[inner[key]], weights)
    if not found:
        first = ", ".join(list(weights)[:SHOWN])
        raise DataError(
            f"'{weights.source}': none of its {len(weights)} tensors is of a part of this step "
            f"({', '.join(owner.name for owner in parts)}); they are called: {first}"
        )
    return found


def owners(recipe: Recipe, step: str, model: Model) -> list[Owner]:
    """The parts of a step that may take weights."""
    own = recipe.steps[step]
    found = [Owner("the backbone", "backbone", type(recipe.backbone), "backbone.", model.backbone)]
    for name in own.inputs:
        if name in model.inputs:
            read = type(recipe.inputs[name])
            found.append(Owner(f"input '{name}'", "embedder", read, f"embedders.{name}.", model.embedders[name]))
    for name in own.objectives:
        if name == GENERATOR:
            found.append(Owner("the generator", "generator", type(recipe.generator), "generator.", model.generator))
        else:
            config, head = type(recipe.objectives[name]), model.objective(name)
            found.append(Owner(f"objective '{name}'", "objective", config, f"objectives.{name}.", head))
    return found


def _asked(owner: Owner, weights: PublishedWeights) -> Mapping[str, Tensor]:
    """What a part says is its own. Raises PluginError unless that is tensors by name."""
    with part_calls(owner, "published"):
        given = owner.module.published(weights)
    if not isinstance(given, Mapping):
        raise PluginError(f"{owner}: published gives a {type(given).__name__}, not a mapping of names to tensors")
    if wrong := next((name for name, each in given.items() if not isinstance(each, Tensor)), None):
        raise PluginError(f"{owner}: published gives '{wrong}' as a {type(given[wrong]).__name__}, not as a tensor")
    return given


def _fitting(owner: Owner, name: str, tensor: Tensor, own: Tensor, weights: PublishedWeights) -> Tensor:
    """A tensor that takes the place of `own`. Raises DataError for another shape, or numbers that are none."""
    called = weights.name_of(tensor)
    there = f"'{called}'" if called else "what it makes of it"
    if tensor.shape != own.shape:
        raise DataError(
            f"'{weights.source}': {owner}: {there} is {tuple(tensor.shape)}, and {name} {tuple(own.shape)} here; give "
            "the part the sizes of these weights, or take others"
        )
    if tensor.dtype != own.dtype and not (own.is_floating_point() and tensor.dtype in FLOATS):
        raise DataError(
            f"'{weights.source}': {owner}: {there} has numbers of another kind ({tensor.dtype}), which mean nothing "
            "without what they were scaled by; take weights that are not quantised"
        )
    if tensor.is_floating_point() and not tensor.isfinite().all():
        raise DataError(f"'{weights.source}': {owner}: {there} is not finite (NaN or infinite); the file is damaged")
    return tensor.to(own.dtype)


def _record(
    recipe: Recipe, step: str, model: Model, weights: PublishedWeights, tensors: Mapping[str, Tensor]
) -> dict[str, Any]:
    """What `start.json` says: which files, what of them was taken, what nobody took, what stays as it was built."""
    prefixes = tuple(owner.prefix for owner in owners(recipe, step, model))
    own = [name for name, tensor in state(model).items() if name.startswith(prefixes)]
    return {
        "start": recipe.steps[step].start,
        "sha256": weights.files,
        "tensors": len(weights),
        "taken": sorted(tensors),
        "left over": weights.left_over,
        "as built": [name for name in own if name not in tensors],
    }


def _told(step: str, record: Mapping[str, Any], path: Path) -> str:
    """The record in a line."""
    total, over, built = record["tensors"], record["left over"], record["as built"]
    parts = [f"{step}: {record['start']}: {total - len(over)} of {total} tensors taken"]
    for words, names in (("left over", over), ("as built", built)):
        if names:
            parts.append(f"{words} {len(names)} ({', '.join([*names[:SHOWN], *['...'] * (len(names) > SHOWN)])})")
    return f"{'; '.join(parts)}; all names are in {path}"


def _refuse_others(weights: PublishedWeights, recipe: Recipe, folder: RunFolder) -> None:
    """Raises RunError where a step of this run, be it this one, started under the same name from other files."""
    for name, files in kept_start.digests(folder.path).items():
        source = recipe.steps[name].weights if name in recipe.steps else None
        same = source is not None and os.path.realpath(source) == os.path.realpath(weights.source)
        if same and files != weights.files:
            raise RunError(
                f"'{weights.source}': these are not the weights that the step '{name}' of this run started from "
                f"({_digests(weights.files)} now, {_digests(files)} then); put those back, or use --fresh"
            )


def _digests(files: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {digest[:12]}" for name, digest in files.items())
