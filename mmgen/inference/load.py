"""Load a step of a run or of an export as a predictor; settings that may change; the step that suits queries."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from ..configs import EmbedderConfig, FeaturesConfig
from ..data.datasets import Datasets
from ..errors import RecipeError, RunError, placed
from ..features.uninitialised import Uninitialised
from ..files import read_table
from ..recipe.load import with_settings
from ..recipe.messages import describe_mistake
from ..recipe.tables import NoData, Recipe
from ..registry import installed, load_files
from ..storage.model_files import (
    EXTRACTORS,
    INPUTS,
    build_model,
    features_file,
    parts_in_weights,
    prepare_inputs,
    read_step,
)
from ..storage.run_folder import RunFolder
from ..storage.weights import load_state
from .best_step import ChosenStep, best_step, choose_step, trained_steps
from .hub import find_folder
from .predictor import Predictor
from .query import Query

log = logging.getLogger("mmgen")
OVERRIDABLE = re.compile(r"decoding\b|inputs\.[\w-]+\.(extractor|features|allow_other_features)\b")


def load(
    where: str | Path,
    step: str | None = None,
    *,
    sets: Sequence[str] = (),
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    plugins: Sequence[str | Path] = (),
    **hub: Any,
) -> Predictor:
    """Load a model as a predictor: from a run, from an export, or from the Hugging Face Hub.

        model = mmgen.load("hf:user/name")
        model.ask("photo.jpg", n=3).texts

    where   the folder of a run or of an export, or "hf:user/name", or "hf:user/name@revision"
    step    default: the recipe's `default_step`, or the best one by the table's first metric. A call of `ask` or
            `predict` without its inputs is answered by the best step that reads those it gives
    sets    overrides of decoding, and of an input's extractor and features: "decoding.num_beams=4"
    device  default: a GPU if there is one, else "cpu"
    dtype   of weights and computations: "float32", "bfloat16" or "float16"
    plugins files with parts that the model needs, which are executed
    hub     options of `huggingface_hub.snapshot_download`: token, cache_dir, local_files_only

    Raises RunError, RecipeError, DataError, PluginError and UnavailableError."""
    if fixed := [setting for setting in sets if not OVERRIDABLE.match(setting)]:
        raise RecipeError(
            f"--set {fixed[0]}: the settings of a trained run are fixed; only decoding.* and an input's extractor, "
            "features, allow_other_features (inputs.NAME.*) can be overridden"
        )
    load_files(plugins)
    folder = RunFolder(find_folder(where, **hub))
    recipe = folder.recipe(installed())
    trained = trained_steps(folder, recipe)
    chosen = ChosenStep(step) if step else best_step(recipe, folder, trained)
    if chosen.name not in trained:
        raise RunError(f"{folder.path}: step '{chosen.name}' has no weights; trained steps: {', '.join(trained)}")
    predictor = _load_step(folder, recipe.decoding_as(chosen.name), chosen.name, sets)
    predictor.chosen = chosen.reason
    if step is None and len(recipe.steps) > 1:
        predictor.other_steps = _other_steps(predictor, folder, sets)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    predictor.model.to(device, getattr(torch, dtype) if isinstance(dtype, str) else dtype)
    return predictor


def _load_step(folder: RunFolder, recipe: Recipe, step: str, sets: Sequence[str]) -> Predictor:
    """The predictor of a step: the parts that its weights belong to, built without weights, and those."""
    exported = isinstance(recipe.data, NoData)
    recipe = _closed(recipe, folder) if exported else recipe
    recipe = with_settings(recipe, sets, installed()) if sets else recipe
    tensors = read_step(recipe, folder, step)
    input_names, objectives = parts_in_weights(recipe, step, tensors)
    inputs = _restore_inputs(recipe, folder, input_names)
    recipe = recipe.model_copy(update={"inputs": {**recipe.inputs, **inputs}})
    needed = {"inputs": inputs, "objectives": {name: recipe.objectives[name] for name in objectives}}
    with placed(folder.path / "recipe.json"), Uninitialised(sum(tensor.numel() for tensor in tensors.values())):
        model = build_model(recipe.model_copy(update=needed), folder=folder.backbone)
    load_state(model, tensors, folder.weights(recipe.trained_by(step)))
    if not exported:
        prepare_inputs(model, recipe, partial(Datasets, recipe))
    return Predictor(model, recipe, step, folder)


def _closed(recipe: Recipe, folder: RunFolder) -> Recipe:
    """The recipe of an export, which may come from a stranger, without anything outside of its folder: an extractor
    counts only if the folder has it."""
    inputs = dict(recipe.inputs)
    for name, config in recipe.inputs.items():
        if isinstance(config, FeaturesConfig):
            extractor = config.extractor if (folder.path / EXTRACTORS / name).is_dir() else None
            inputs[name] = config.model_copy(update={"features": None, "extractor": extractor})
    return recipe.model_copy(update={"inputs": inputs})


def _restore_inputs(recipe: Recipe, folder: RunFolder, names: Sequence[str]) -> dict[str, EmbedderConfig]:
    """The configs of inputs with what training has found out, and the file of the run's own features. Raises
    RunError."""
    path = folder.path / INPUTS
    saved = read_table(path, **dict.fromkeys(names, dict))
    inputs: dict[str, EmbedderConfig] = {}
    for name in names:
        config = recipe.inputs[name]
        try:
            inputs[name] = type(config).model_validate({**dict(config), **saved[name]})
        except ValidationError as error:
            key, text = describe_mistake(type(config), error.errors()[0])
            raise RunError(f"{path}: damaged: {'.'.join((name, *key))}: {text}") from None
        extractor = config.extractor if isinstance(config, FeaturesConfig) and config.features is None else None
        if extractor and (store := features_file(extractor, recipe, folder)).exists():
            inputs[name] = inputs[name].model_copy(update={"features": store})
    return inputs


def _other_steps(
    first: Predictor, folder: RunFolder, sets: Sequence[str]
) -> Callable[[Sequence[Query], bool], Predictor]:
    """A function that loads the best step of a run for queries (`choose_step`), once, like the `first` one."""
    loaded: dict[Any, Predictor] = {None: first}

    def load_best(queries: Sequence[Query], writes: bool) -> Predictor:
        forms = writes, frozenset(frozenset(query.inputs) for query in queries)
        if forms not in loaded:
            chosen = choose_step(folder.path, queries, writes)
            predictor = next((known for known in loaded.values() if known.step == chosen.name), None)
            if predictor is None:
                device, dtype = first.model.device, first.model.dtype
                predictor = load(folder.path, chosen.name, sets=sets, device=device, dtype=dtype)
                predictor.chosen = chosen.reason
                log.warning("%r answers", predictor)
            loaded[forms] = predictor
        return loaded[forms]

    return load_best


def load_for(
    path: str | Path, queries: Sequence[Query], step: str | None = None, sets: Sequence[str] = (), writes: bool = True
) -> Predictor:
    """The predictor of `step`, for a command; by default of the best step that reads exactly the inputs of every query
    (`best_step`).

    `writes`: whether the step must write texts, or predict something else. Raises RunError and DataError, naming the
    missing or unread input."""
    place = find_folder(path)
    chosen = ChosenStep(step) if step else choose_step(place, queries, writes)
    predictor = load(place, chosen.name, sets=sets)
    predictor.chosen = chosen.reason
    if writes:
        predictor.check_writes()
    elif predictor.kind == "text":
        raise RunError(f"{path}: step '{predictor.step}' writes texts; use `mmgen generate`")
    return predictor
