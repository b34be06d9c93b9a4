"""Prepare: what a run needs before its first step learns: features, the model, checks of the data."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from ..configs import ExtractorConfig, FeaturesConfig
from ..data.checked import references_of
from ..data.datasets import Datasets
from ..data.seeds import seeded
from ..errors import MmgenError, RunError
from ..features import extract
from ..features.store import FeatureStore
from ..files import read_table, write_folder, write_json
from ..model import Model, Objectives, compose
from ..parts import Dataset, Metric, Picture
from ..progress import Progress
from ..recipe.tables import SOURCE_KEYS, Recipe
from ..storage.run_folder import RunFolder, differences
from ..tensors import Example
from .step_weights import inputs_of

INPUTS = "inputs.json"  # in a run folder: which features its inputs learn from
LABELS = "labels.json"  # in a run folder: what its heads choose from


def title(recipe: Recipe) -> str:
    """What a run is called."""
    return f"{recipe.name}{f', profile {recipe.profile}' if recipe.profile else ''}, seed {recipe.seed}"


def introduce(recipe: Recipe, dataset: Dataset, progress: Progress) -> None:
    """What a person should know before it starts."""
    counts = ", ".join(f"{split} {len(dataset.split(split))}" for split in dataset.splits())
    progress.say(f"data: {recipe.data.type} ({counts})")


def build_model(recipe: Recipe, datasets: Datasets | None = None, folder: Path | None = None) -> Model:
    """The model as it is before any step: from the recipe and its seed, or from what a run keeps in `folder`."""
    texts = list(datasets.texts()) if datasets else None
    labels = datasets.labels() if datasets else read_labels(folder.parent) if folder else {}
    with seeded(recipe.seed, "model"):
        return compose(
            recipe.backbone,
            recipe.inputs,
            recipe.generator,
            texts=texts,
            folder=folder,
            sequence=recipe.sequence,
            objectives=Objectives(recipe.objectives, labels),
        )


def build_metrics(recipe: Recipe, datasets: Datasets) -> dict[str, Metric]:
    """The metrics of a run, built once: some keep a program. Each scores the references now, because the table needs
    that after learning, and a mistake should end the run before. Raises what metrics raise, and PluginError."""
    metrics = {name: config.build() for name, config in recipe.metrics.items()}
    asked: dict[tuple[str, int], tuple[str, Sequence[Example]]] = {}
    for step in (step for step, own in recipe.steps.items() if own.evaluate):
        examples = datasets.scored_by(step)
        asked |= {(name, id(datasets.dataset_of(step))): (name, examples) for name in recipe.judging(step)}
    for name, examples in asked.values():
        references_of(name, metrics[name], examples)
    return metrics


def read_labels(folder: Path) -> dict[str, tuple[str, ...]]:
    """What a run's heads choose from; runs without labels have no such file. Raises RunError for a damaged one."""
    path = folder / LABELS
    if not path.exists():
        return {}
    tables = read_table(path, labels=dict)["labels"]
    if not all(isinstance(values, list) and all(isinstance(one, str) for one in values) for values in tables.values()):
        raise RunError(f"{path}: damaged: it holds no lists of texts; copy it from where the run was made")
    return {name: tuple(values) for name, values in tables.items()}


def model_of_steps(
    recipe: Recipe,
    steps: Sequence[str],
    datasets: Datasets,
    folder: RunFolder,
    accelerator: Accelerator,
    progress: Progress,
) -> tuple[Model, Recipe]:
    """The model that these steps begin with, and the recipe with the features that were made for it.

    Inputs that no step of them reads are left out, and their features need not be there. One is built all the same
    where the random numbers of a part behind it depend on it: a step alone learns what it learns among others."""
    read = inputs_of(recipe, list(steps))
    few = recipe.model_copy(update={"inputs": {name: recipe.inputs[name] for name in read}})
    if len(read) < len(recipe.inputs):
        filled = fill_stores(few, datasets, folder, accelerator, progress)
        model = build_model(filled, datasets)
        if not _draws_behind_a_gap(recipe, model):
            return model, recipe.model_copy(update={"inputs": {**recipe.inputs, **filled.inputs}})
    filled = fill_stores(recipe, datasets, folder, accelerator, progress)
    return build_model(filled, datasets), filled


def _draws_behind_a_gap(recipe: Recipe, model: Model) -> bool:
    """Whether a part has parameters that is built after an input which is left out of the model. (Objectives draw from
    seeds of their own.)"""
    names = list(recipe.inputs)
    gap = min(place for place, name in enumerate(names) if name not in model.inputs)
    behind = [model.embedders[name] for name in names[gap:] if name in model.inputs]
    return any(True for part in [*behind, model.generator] for _ in part.parameters())


def fill_stores(
    recipe: Recipe, datasets: Datasets, folder: RunFolder, accelerator: Accelerator, progress: Progress
) -> Recipe:
    """The recipe with a features file for every input that names an extractor instead of one.

    The file is kept beside the seeds' folders and is used by all of them.
    """
    inputs = dict(recipe.inputs)
    for name, config in recipe.inputs.items():
        if not isinstance(config, FeaturesConfig) or config.extractor is None or config.features is not None:
            continue
        path = features_file(config.extractor, recipe, folder)
        if accelerator.is_main_process and not all_in(
            path, pictures := list(datasets.pictures())
        ):  # broken ones may have been mended
            summary = extract.extract(
                config.extractor.build(), pictures, path, progress=progress, wait=True
            )  # another seed may be at it
            for key, reason in summary.broken:
                progress.say(f"{name}: picture '{key}' was skipped: {reason}")
        accelerator.wait_for_everyone()
        inputs[name] = config.model_copy(update={"features": path})
    return recipe.model_copy(update={"inputs": inputs})


def unmade(recipe: Recipe, folder: RunFolder) -> set[str]:
    """Inputs whose features are still to be made. (A file may lack pictures; who builds the model looks.)"""
    return {
        name
        for name, config in recipe.inputs.items()
        if isinstance(config, FeaturesConfig)
        and config.extractor is not None
        and config.features is None
        and not features_file(config.extractor, recipe, folder).exists()
    }


def all_in(path: Path, pictures: Sequence[Picture]) -> bool:
    """Whether a store is there and holds these pictures."""
    if not path.exists():
        return False
    with contextlib.closing(FeatureStore(path)) as store:
        return all(picture.key in store for picture in pictures)


def features_file(extractor: ExtractorConfig, recipe: Recipe, folder: RunFolder) -> Path:
    """Where the features lie that an extractor makes of the run's pictures. All inputs that have it share the file,
    which is called after the first of them."""
    name = next(
        name
        for name, config in recipe.inputs.items()
        if isinstance(config, FeaturesConfig) and config.features is None and config.extractor == extractor
    )
    fingerprint = read_table(folder.path / "data.json", fingerprint=str)["fingerprint"]
    configs = [recipe.data, *(config for step in recipe.steps.values() for config in step.own)]
    data = [config.model_dump(mode="json") for config in configs]
    made_from = [extractor.model_dump(mode="json"), *data, fingerprint]
    path = _features_path(name, json.dumps(made_from, sort_keys=True), folder)
    return path if path.exists() else _features_of_the_kept(name, extractor, data, fingerprint, folder) or path


def _features_path(name: str, made_from: str, folder: RunFolder) -> Path:
    return folder.path.parent / "features" / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}.h5"


def _features_of_the_kept(
    name: str, extractor: ExtractorConfig, now: Sequence[Any], fingerprint: str, folder: RunFolder
) -> Path | None:
    """The file whose name follows from recipe.json as it stands: paths are written otherwise in another folder than the
    run's first. Runs of the first edition took the tables in their order."""
    path = folder.path / "recipe.json"
    try:
        tables = read_table(path, inputs=dict, data=dict, steps=dict)
        own = [data for step in tables["steps"].values() for data in _data_sets(step.get("data"))]
        data = [tables["data"], *own, fingerprint]
        if _without_texts(data[:-1]) != _without_texts(now):
            return None  # other pictures
        names = [json.dumps([extractor.model_dump(mode="json"), *data], sort_keys=True)]
        names.append(json.dumps([tables["inputs"][name]["extractor"], *data]))
    except (MmgenError, KeyError, AttributeError, TypeError):  # whoever needs the recipe says what is wrong with it
        return None
    files = [_features_path(name, made_from, folder) for made_from in names]
    return next((file for file in files if file.exists()), None)


def _data_sets(kept: Any) -> list[dict[str, Any]]:
    """The data sets that a kept step has of its own, one or several."""
    several = kept if isinstance(kept, list) else [kept] if kept is not None else []
    return [{key: value for key, value in one.items() if key not in SOURCE_KEYS} for one in several]


def _without_texts(value: Any) -> Any:
    """Nested tables without what may be a path."""
    if isinstance(value, dict):
        return {key: _without_texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_texts(inner) for inner in value]
    return None if isinstance(value, str) else value


def begin(recipe: Recipe, step: str, model: Model, given: Collection[str] = ()) -> None:
    """Heads that no step before this one has learnt begin from the weights that it starts with. `given`: names of
    published weights that are in the model; a head among them has begun."""
    *before, own = recipe.chain(step)
    learnt = {name for earlier in before for name in recipe.steps[earlier].objectives}
    for name in recipe.steps[own].objectives:
        if name not in learnt and not any(key.startswith(f"objectives.{name}.") for key in given):
            with torch.random.fork_rng(), torch.no_grad():
                model.objective(name).begin(model)


def keep_parts(model: Model, folder: RunFolder, labels: Mapping[str, tuple[str, ...]]) -> None:
    """What a run needs to be loaded without the files it was made from."""
    if labels:
        if (folder.path / LABELS).exists() and read_labels(folder.path) != labels:
            raise RunError(f"{folder.path}: its heads have learnt other labels than the data have now; use --fresh")
        write_json(folder.path / LABELS, {"labels": {name: list(values) for name, values in labels.items()}})
    write_folder(folder.backbone, model.backbone.save)
    kept = {name: embedder.found_settings() for name, embedder in model.embedders.items()}
    path, earlier = folder.path / INPUTS, {}
    if any(folder.path.glob("steps/*/*.safetensors")):
        earlier = read_table(path, **{name: dict for name in kept if name in read_table(path)})
        for name, before in earlier.items():
            now = {key: value for key, value in kept.get(name, {}).items() if key in before or not before}
            if name in kept and before != json.loads(json.dumps(now)):  # what was not told before may be told now
                changes = "; ".join(differences(before, now))
                raise RunError(
                    f"{folder.path}: the features of '{name}' are not those its steps have learnt from ({changes}); "
                    "give those back, or use --fresh"
                )
    write_json(path, earlier | kept)
