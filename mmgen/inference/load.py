"""Load a run or an export as a predictor; device, dtype, settings and decoding that may change; a step for queries."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from ..configs import EmbedderConfig, FeaturesConfig
from ..data.datasets import Datasets
from ..errors import DataError, RecipeError, RunError, placed
from ..files import check_table, read_table
from ..recipe.layers import setting_table
from ..recipe.load import with_settings
from ..recipe.messages import mistake_text
from ..registry import Registry, installed
from ..storage.exports import is_export, read_config
from ..storage.model_files import build_model, features_file, prepare_inputs
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of, load_step
from .best_step import ChosenStep, best_step, choose_step, form_of
from .hub import find_folder
from .load_export import load_export
from .predictor import Predictor
from .query import Query
from .query_names import COMMAND_ADVICE

log = logging.getLogger("mmgen")
INPUT_SETTINGS = ("extractor", "features", "allow_other_features")  # keys of a trained input that may be overridden


def load(
    where: str | Path,
    *,
    step: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
) -> Predictor:
    """Load a model as a predictor: from an export, from a run, or from the Hugging Face Hub.

        model = mmgen.load("hf:user/name")
        model.ask("photo.jpg", n=3).texts

    where   the folder of an export or of a run, or "hf:user/name", or "hf:user/name@revision"
    step    of a run: the step; default: the recipe's `default_step`, or the best one by the table's first metric. A
            call of `ask` or `predict` without its inputs is answered by the best step that reads those it gives
    device  default: a GPU if there is one, else "cpu"
    dtype   of weights and computations: "float32" (default), "bfloat16" or "float16"
    token, cache_dir, local_files_only  see `huggingface_hub.snapshot_download`

    Raises RunError, DataError, PluginError and UnavailableError."""
    torch_device, torch_dtype = _parse_device(device), _parse_dtype(dtype or "float32")
    folder = find_folder(where, token=token, cache_dir=cache_dir, local_files_only=local_files_only)
    predictor = open_model(folder, step)
    predictor.model.to(torch_device, torch_dtype)
    return predictor


def open_model(folder: Path, step: str | None = None, sets: Sequence[str] = ()) -> Predictor:
    """The predictor of an export, or of a step of a run. `step`, `sets`: see `load_run`. Raises RunError."""
    if not is_export(folder):
        return load_run(folder, step, sets=sets)
    if step is not None and step != (exported := read_config(folder)["step"]):
        raise RunError(f"{folder}: has no step '{step}', because it is an export of step '{exported}'")
    _check_overridable(sets)
    predictor = load_export(folder, installed(), sets)
    predictor.model.to(_parse_device(None))
    return predictor


def _parse_device(name: str | None) -> torch.device:
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        device = torch.device("meta")  # which holds no values, so that it is refused too
    if device.type == "meta":
        raise DataError(f'device {name!r:.60}: must be "cpu", "cuda" or "cuda:N"')
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):  # torch raises either, by the kind of device
        raise DataError(f'device {name!r:.60}: not available on this machine; use "cpu", or leave it out') from None
    return device


def _parse_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None) if isinstance(name, str) else name
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point or dtype.itemsize < 2:  # float8 only stores
        raise DataError(f'dtype {name!r:.60}: must be "float32", "bfloat16" or "float16"')
    return dtype


def load_run(
    path: str | Path,
    step: str | None = None,
    registry: Registry | None = None,
    sets: Sequence[str] = (),
    *,
    threads: int | None = None,
    warm: bool = False,
) -> Predictor:
    """Load the model of a step as a predictor, on the GPU if there is one.

    step     default: the recipe's `default_step`, or the best trained step by the table's first metric; others answer
             queries that do not give its inputs
    sets     overrides of the run's recipe: decoding, and the source of an input's features
    threads  number of CPU threads of torch; a setting of the process
    warm     build extractors and answer a dummy query first, so that the first real query is fast

    Raises RunError."""
    if threads is not None:
        if not isinstance(threads, int) or threads < 1:
            raise DataError(f"threads must be a positive integer, not {threads!r:.60}")
        torch.set_num_threads(threads)
    folder, registry = RunFolder(Path(path)), registry or installed()
    recipe = folder.recipe(registry)
    _check_overridable(sets)
    trained = [name for name in recipe.steps if folder.trained(recipe, name)]
    if not trained:
        raise RunError(f"{path}: no step is trained yet; continue with `mmgen run`")
    chosen = ChosenStep(step, "") if step else best_step(recipe, folder, trained)
    if (step_name := chosen.name) not in trained:
        raise RunError(f"{path}: step '{step_name}' has no weights; trained steps: {', '.join(trained)}")
    if chosen.reason:
        log.info("%s: step '%s' answers, %s", path, step_name, chosen.reason)
    recipe = recipe.decoding_as(step_name)
    recipe = with_settings(recipe, sets, registry) if sets else recipe
    inputs_file = folder.path / "inputs.json"
    step_inputs, saved = inputs_of(recipe, [step_name]), read_table(inputs_file)
    input_names = [name for name in recipe.inputs if name in saved or name in step_inputs]
    check_table(saved, inputs_file, dict.fromkeys(input_names, dict))
    inputs: dict[str, EmbedderConfig] = {}
    for name in input_names:  # a run with --step builds only the inputs of its steps
        config = recipe.inputs[name]
        store = None
        if isinstance(config, FeaturesConfig) and config.extractor is not None and config.features is None:
            store = features_file(config.extractor, recipe, folder)
        features = {"features": store} if store and store.exists() else {}
        inputs[name] = restore_config(config, saved[name], inputs_file, name).model_copy(update=features)
    recipe = recipe.model_copy(update={"inputs": {**recipe.inputs, **inputs}})
    with placed(folder.path / "recipe.json"):
        model = build_model(recipe.model_copy(update={"inputs": inputs}), folder=folder.backbone)
    for name, embedder in model.embedders.items():
        if json.loads(json.dumps(embedder.inferred_settings())) != saved[name]:
            raise RunError(
                f"{inputs_file}: damaged: settings of '{name}' from training are missing; copy the file from the "
                "original run"
            )
    load_step(model, recipe, folder, step_name)
    prepare_inputs(model, recipe, partial(Datasets, recipe))
    predictor = Predictor(model.to("cuda" if torch.cuda.is_available() else "cpu"), recipe, step_name, folder)
    predictor.chosen = chosen.reason
    if step is None:
        predictor.other_steps = _other_steps(predictor, folder, registry, sets)
    if warm:
        predictor.warm()
    return predictor


def _other_steps(
    first: Predictor, folder: RunFolder, registry: Registry, sets: Sequence[str]
) -> Callable[[Sequence[Query], bool], Predictor]:
    """A function that loads the best step of a run for queries (`choose_step`), once, like the `first` one."""
    loaded = {first.step: first}
    chosen_for: dict[object, ChosenStep] = {}

    def load_best(queries: Sequence[Query], writes: bool) -> Predictor:
        forms = frozenset(map(form_of, queries)), writes
        if forms not in chosen_for:
            chosen_for[forms] = choose_step(folder.path, queries, writes) or ChosenStep(first.step, "")
        chosen = chosen_for[forms]
        if chosen.name not in loaded:
            predictor = load_run(folder.path, chosen.name, registry, sets)
            predictor.model.to(first.model.device, next(first.model.parameters()).dtype)
            predictor.chosen = chosen.reason
            why = f", {chosen.reason}" if chosen.reason else ""
            log.warning("%s: step '%s' answers, which reads %s%s", folder.path, chosen.name, predictor.names.reads, why)
            loaded[chosen.name] = predictor
        return loaded[chosen.name]

    return load_best


def _check_overridable(sets: Sequence[str]) -> None:
    """Raises RecipeError for a setting that is fixed after training."""
    settings_by_table = ((text, *item) for text in sets for item in setting_table(text)[0].items())
    for setting, name, value in settings_by_table:
        keys = (
            [key for settings in value.values() if isinstance(settings, dict) for key in settings]
            if name == "inputs" and isinstance(value, dict)
            else []
        )
        if name != "decoding" and not (keys and set(keys) <= set(INPUT_SETTINGS)):
            raise RecipeError(
                f"--set {setting}: the settings of a trained run are fixed; only decoding.* and an input's "
                f"{', '.join(INPUT_SETTINGS)} (inputs.NAME.*) can be overridden"
            )


def restore_config(config: EmbedderConfig, saved: Mapping[str, Any], path: Path, name: str) -> EmbedderConfig:
    """An embedder's config with the values saved by its run. Raises RunError for invalid values."""
    try:
        return type(config).model_validate({**dict(config), **saved})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (name, *first["loc"])))
        raise RunError(f"{path}: damaged: {place}: {mistake_text(first)}") from None


def load_for(
    path: str | Path, queries: Sequence[Query], step: str | None = None, sets: Sequence[str] = (), writes: bool = True
) -> Predictor:
    """The predictor of `step`, for a command; by default of the best step that reads exactly the inputs of every query
    (`best_step`).

    `writes`: whether the step must write texts, or predict something else. Raises RunError and DataError, naming the
    missing or unread input."""
    place = find_folder(path)
    chosen = choose_step(place, queries, writes) if step is None and not is_export(place) else None
    predictor = open_model(place, chosen.name if chosen else step, sets)
    predictor.chosen = chosen.reason if chosen else predictor.chosen
    predictor.names.advice = COMMAND_ADVICE
    if writes and predictor.kind != "text":
        raise RunError(f"{path}: step '{predictor.step}' writes no texts; use `mmgen predict`")
    if not writes and predictor.kind == "text":
        raise RunError(f"{path}: step '{predictor.step}' writes texts; use `mmgen generate`")
    return predictor
