"""Load a step of a run or of an export as a predictor; settings that may change; the step that suits queries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from ..configs import EmbedderConfig, FeaturesConfig
from ..data.datasets import Datasets
from ..errors import DataError, RecipeError, RunError, placed
from ..features.uninitialised import Uninitialised
from ..files import read_table
from ..recipe.layers import setting_table
from ..recipe.load import with_settings
from ..recipe.messages import mistake_text
from ..recipe.tables import NoData, Recipe
from ..registry import installed, load_files
from ..storage.model_files import EXTRACTORS, INPUTS, build_model, features_file, prepare_inputs
from ..storage.run_folder import RunFolder
from ..storage.step_weights import parts_in_weights, read_step
from ..storage.weights import load_state
from .best_step import ChosenStep, best_step, choose_step, form_of, trained_steps
from .hub import find_folder
from .predictor import Predictor
from .query import Query
from .query_names import COMMAND_ADVICE

log = logging.getLogger("mmgen")
INPUT_SETTINGS = ("extractor", "features", "allow_other_features")  # keys of a trained input that may be overridden


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
    _check_overridable(sets)
    load_files(plugins)
    folder = RunFolder(find_folder(where, **hub))
    recipe = folder.recipe(installed())
    trained = trained_steps(folder, recipe)
    chosen = ChosenStep(step, "") if step else best_step(recipe, folder, trained)
    if chosen.name not in trained:
        raise RunError(f"{folder.path}: step '{chosen.name}' has no weights; trained steps: {', '.join(trained)}")
    if chosen.reason:
        log.info("%s: step '%s' answers, %s", folder.path, chosen.name, chosen.reason)
    predictor = _load_step(folder, recipe.decoding_as(chosen.name), chosen.name, sets)
    predictor.chosen = chosen.reason
    if step is None and len(recipe.steps) > 1:
        predictor.other_steps = _other_steps(predictor, folder, sets)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        predictor.model.to(device, getattr(torch, dtype) if isinstance(dtype, str) else dtype)
    except (RuntimeError, AssertionError, TypeError, AttributeError) as error:  # torch raises any of them
        reason = str(error).partition("\n")[0]
        raise DataError(f"the model cannot be loaded to device {str(device)!r} as {dtype}: {reason}") from None
    return predictor


def _load_step(folder: RunFolder, recipe: Recipe, step: str, sets: Sequence[str]) -> Predictor:
    """The predictor of a step: the parts that its weights belong to, built without weights, and those."""
    recipe, extractors = _closed(recipe, folder, sets)
    recipe = with_settings(recipe, sets, installed()) if sets else recipe
    tensors = read_step(recipe, folder, step)
    input_names, objectives = parts_in_weights(recipe, step, tensors)
    inputs = _restore_inputs(recipe, folder, input_names)
    recipe = recipe.model_copy(update={"inputs": {**recipe.inputs, **inputs}})
    needed = {"inputs": inputs, "objectives": {name: recipe.objectives[name] for name in objectives}}
    with placed(folder.path / "recipe.json"), Uninitialised(sum(tensor.numel() for tensor in tensors.values())):
        model = build_model(recipe.model_copy(update=needed), folder=folder.backbone)
    load_state(model, tensors, folder.weights(recipe.trained_by(step)))
    if not isinstance(recipe.data, NoData):
        prepare_inputs(model, recipe, partial(Datasets, recipe))
    return Predictor(model, recipe, step, folder, extractors=extractors)


def _closed(recipe: Recipe, folder: RunFolder, sets: Sequence[str]) -> tuple[Recipe, dict[str, Path]]:
    """The recipe of an export, which may come from a stranger, without anything outside of its folder; and the folder
    of every input's extractor that `sets` do not replace. Runs stay as they are. Raises RunError."""
    if not isinstance(recipe.data, NoData):
        return recipe, {}
    tables = [setting_table(setting)[0].get("inputs", {}) for setting in sets]
    replaced = {name for table in tables for name, settings in table.items() if "extractor" in settings}
    inputs, extractors = dict(recipe.inputs), {}
    for name, config in recipe.inputs.items():
        if not isinstance(config, FeaturesConfig):
            continue
        inputs[name] = config.model_copy(update={"features": None, **({"extractor": None} if name in replaced else {})})
        if config.extractor is not None and name not in replaced:
            extractors[name] = folder.path / EXTRACTORS / name
            if not extractors[name].is_dir():
                raise RunError(f"{extractors[name]}: missing; download or copy the complete folder again")
    return recipe.model_copy(update={"inputs": inputs}), extractors


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
            first = error.errors()[0]
            place = ".".join(map(str, (name, *first["loc"])))
            raise RunError(f"{path}: damaged: {place}: {mistake_text(first)}") from None
        extractor = config.extractor if isinstance(config, FeaturesConfig) and config.features is None else None
        if extractor and (store := features_file(extractor, recipe, folder)).exists():
            inputs[name] = inputs[name].model_copy(update={"features": store})
    return inputs


def _other_steps(
    first: Predictor, folder: RunFolder, sets: Sequence[str]
) -> Callable[[Sequence[Query], bool], Predictor]:
    """A function that loads the best step of a run for queries (`choose_step`), once, like the `first` one."""
    loaded = {first.step: first}
    chosen_for: dict[object, ChosenStep] = {}

    def load_best(queries: Sequence[Query], writes: bool) -> Predictor:
        forms = frozenset(map(form_of, queries)), writes
        if forms not in chosen_for:
            chosen_for[forms] = choose_step(folder.path, queries, writes)
        chosen = chosen_for[forms]
        if chosen.name not in loaded:
            dtype = next(first.model.parameters()).dtype
            predictor = load(folder.path, chosen.name, sets=sets, device=first.model.device, dtype=dtype)
            predictor.chosen, why = chosen.reason, ", ".join(filter(None, [predictor.names.reads, chosen.reason]))
            log.warning("%s: step '%s' answers, which reads %s", folder.path, chosen.name, why)
            loaded[chosen.name] = predictor
        return loaded[chosen.name]

    return load_best


def _check_overridable(sets: Sequence[str]) -> None:
    """Raises RecipeError for a setting that is fixed after training."""
    for setting in sets:
        ((table, value),) = setting_table(setting)[0].items()
        inputs = [*value.values()] if table == "inputs" and isinstance(value, dict) else []
        if table != "decoding" and not (
            inputs and all(isinstance(keys, dict) and {*keys} <= {*INPUT_SETTINGS} for keys in inputs)
        ):
            raise RecipeError(
                f"--set {setting}: the settings of a trained run are fixed; only decoding.* and an input's "
                f"{', '.join(INPUT_SETTINGS)} (inputs.NAME.*) can be overridden"
            )


def load_for(
    path: str | Path, queries: Sequence[Query], step: str | None = None, sets: Sequence[str] = (), writes: bool = True
) -> Predictor:
    """The predictor of `step`, for a command; by default of the best step that reads exactly the inputs of every query
    (`best_step`).

    `writes`: whether the step must write texts, or predict something else. Raises RunError and DataError, naming the
    missing or unread input."""
    place = find_folder(path)
    chosen = ChosenStep(step, "") if step else choose_step(place, queries, writes)
    predictor = load(place, chosen.name, sets=sets)
    predictor.chosen = chosen.reason
    predictor.names.advice = COMMAND_ADVICE
    if writes != (predictor.kind == "text"):
        does = "writes no texts; use `mmgen predict`" if writes else "writes texts; use `mmgen generate`"
        raise RunError(f"{path}: step '{predictor.step}' {does}")
    return predictor
