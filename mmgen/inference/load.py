"""Load: a finished run, as the predictor of one of its steps; and which step suits queries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from ..configs import EmbedderConfig, FeaturesConfig
from ..decoding import Decoding
from ..errors import DataError, RecipeError, RunError
from ..files import read_table
from ..recipe.layers import setting_table
from ..recipe.load import with_settings
from ..recipe.messages import describe_mistake, mistake_text
from ..recipe.tables import Recipe
from ..registry import Registry, installed
from ..storage.model_files import build_model, features_file
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of, load_step
from .names import StepNames, called, steps_read
from .predictor import Predictor
from .query import Query

OF_AN_INPUT = ("extractor", "features", "allow_other_features")  # what can be overridden in a trained input


def load_run(
    path: str | Path,
    step: str | None = None,
    registry: Registry | None = None,
    sets: Sequence[str] = (),
    *,
    threads: int | None = None,
    warm: bool = False,
) -> Predictor:
    """The model of a run's step, on the GPU where there is one, ready to answer.

    step     by default the last one that has weights and is evaluated
    sets     settings laid over the run's recipe: decoding, and where an input's features come from
    threads  of the processor that torch computes with; a setting of the whole process
    warm     build extractors and answer a made-up query first, so that the first real one does not wait

    Raises RunError."""
    if threads is not None:
        if not isinstance(threads, int) or threads < 1:
            raise DataError(f"threads must be a positive integer, not {threads!r:.60}")
        torch.set_num_threads(threads)
    folder, registry = RunFolder(Path(path)), registry or installed()
    recipe = folder.recipe(registry)
    if sets:
        recipe = with_settings(recipe, sets, registry)
        for setting in sets:
            _refuse_trained(setting)
    trained = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    if not trained:
        raise RunError(f"{path}: no step has been learnt yet; go on with `mmgen run`")
    chosen = step or ([name for name in trained if recipe.steps[name].evaluate] or trained)[-1]
    if chosen not in trained:
        raise RunError(f"{path}: no weights of a step '{chosen}'; there are: {', '.join(trained)}")
    path_kept = folder.path / "inputs.json"
    read = inputs_of(recipe, [chosen])
    there = [name for name in recipe.inputs if name in read_table(path_kept) or name in read]
    kept = read_table(path_kept, **dict.fromkeys(there, dict))
    inputs: dict[str, EmbedderConfig] = {}
    for name in there:  # a run of one step alone has not built what it does not read
        config = recipe.inputs[name]
        made = None
        if isinstance(config, FeaturesConfig) and config.extractor is not None and config.features is None:
            made = features_file(config.extractor, recipe, folder)
        features = {"features": made} if made and made.exists() else {}
        inputs[name] = as_kept(config, kept[name], path_kept, name).model_copy(update=features)
    model = build_model(recipe.model_copy(update={"inputs": inputs}), folder=folder.backbone)
    for name, embedder in model.embedders.items():
        if json.loads(json.dumps(embedder.found_settings())) != kept[name]:
            raise RunError(
                f"{path_kept}: damaged: it does not hold all that '{name}' was learnt with; copy it from where the run "
                "was made"
            )
    load_step(model, recipe, folder, chosen)
    predictor = Predictor(model.to("cuda" if torch.cuda.is_available() else "cpu"), recipe, chosen, folder)
    if warm:
        predictor.warm()
    return predictor


def _refuse_trained(setting: str) -> None:
    """Raises RecipeError for a setting of what a finished run has learnt with."""
    table, _ = setting_table(setting)
    for name, value in table.items():
        inner = [key for each in value.values() if isinstance(each, dict) for key in each] if name == "inputs" else []
        if name != "decoding" and not (inner and set(inner) <= set(OF_AN_INPUT)):
            raise RecipeError(
                f"--set {setting}: the settings of a trained run are fixed; only decoding.* and an input's "
                f"{', '.join(OF_AN_INPUT)} (inputs.NAME.*) can be overridden"
            )


def as_kept(config: EmbedderConfig, kept: Mapping[str, Any], path: Path, name: str) -> EmbedderConfig:
    """An embedder's config with what its run keeps of it. Raises RunError when that cannot be."""
    try:
        return type(config).model_validate({**dict(config), **kept})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (name, *first["loc"])))
        raise RunError(f"{path}: damaged: {place}: {mistake_text(first)}") from None


def load_for(
    path: str | Path, queries: Sequence[Query], step: str | None = None, sets: Sequence[str] = (), writes: bool = True
) -> Predictor:
    """The run with the weights of `step`; or else of the last of those steps that read just what every query gives. A
    line of a file that cannot be read is left to the answers. `writes`: whether the step is to write texts, or to
    predict something else. Raises RunError and DataError, naming the input that is missing or not read."""
    folder = RunFolder(Path(path))
    recipe = folder.recipe(installed())
    if step is None:
        fitting = [name for name, own in recipe.steps.items() if own.evaluate and recipe.makes_texts(name) == writes]
        if not fitting and not writes:
            raise RunError(f"{path}: no step predicts anything but texts; ask for those with `mmgen generate`")
        step = _choose_step(recipe, folder, _readable(recipe, queries), fitting)
    predictor = load_run(path, step, sets=sets)
    if not writes and predictor.kind == "text":
        raise RunError(f"{path}: the step '{predictor.step}' predicts nothing but texts; ask it with `mmgen generate`")
    return predictor


def search_options(predictor: Predictor, n: int | None, sets: Sequence[str]) -> Decoding:
    """How texts are searched for: `Predictor.decoding(n)`, or where `sets` name options of decoding the run's own with
    these laid over them. Raises RecipeError."""
    if not any(setting.startswith("decoding") for setting in sets):
        return predictor.decoding(n or 1)
    options = predictor.recipe.decoding.model_dump()
    try:
        return Decoding(**{**options, **({"num_return_sequences": n} if n is not None else {})})
    except ValidationError as error:
        raise RecipeError(f"--n {n}: {describe_mistake(Decoding, error.errors()[0])[1]}") from None


def _readable(recipe: Recipe, queries: Sequence[Query]) -> list[Query]:
    """The queries whose names the recipe knows. Raises DataError for one that is no line of a file, and where no line
    can be read."""
    names = StepNames(recipe, next(iter(recipe.steps)))
    readable, failed = [], None
    for query in queries:
        try:
            query.check()
            names.check_known(query)
            readable.append(query)
        except DataError as error:
            if not query.place:
                raise
            failed = failed or error
    if failed and not readable:
        raise failed
    return readable


def _choose_step(recipe: Recipe, folder: RunFolder, queries: Sequence[Query], fitting: Sequence[str]) -> str | None:
    """The step for these queries, of those that are `fitting` where one of them has weights; None where no step has
    any (`load_run` raises then). Raises RunError."""
    trained = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    if not trained:
        return None
    steps = {name: StepNames(recipe, name) for name in [name for name in trained if name in fitting] or trained}
    missing, unread = {}, {}
    for name, names in steps.items():
        bound = [(query.where, names.bind(query)) for query in queries]
        missing[name] = [(where, values.missing[0]) for where, values in bound if values.missing]
        unread[name] = [(where, values.unread[0]) for where, values in bound if values.unread]
    complete = [name for name in steps if not missing[name]]
    exact = [name for name in complete if not unread[name]]
    if exact:  # what reads most; of two alike, the one that fills none of its inputs itself, and the later
        return max(reversed(exact), key=lambda name: (len(steps[name].required), -len(steps[name].inputs)))
    if complete:
        name = min(reversed(complete), key=lambda name: len({what for _, what in unread[name]}))
        where, what = unread[name][0]
        raise RunError(
            f"{folder.path}: {where}: {called(what)} is not read by the step '{name}'; give all that a step reads and "
            f"nothing else: {steps_read(recipe, list(steps))}"
        )
    name = min(reversed(steps), key=lambda name: (len(unread[name]), len({what for _, what in missing[name]})))
    where, what = missing[name][0]
    whose = f"; {where} has none" if sum(other == what for _, other in missing[name]) < len(queries) else ""
    raise RunError(
        f"{folder.path}: {what} is missing: the step '{name}' reads {steps[name].reads}{whose}; give it with --input "
        f'{what}=VALUE, or as "{what}" in a line of a JSONL file'
    )
