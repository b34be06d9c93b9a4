"""Prepare: what a run needs before its first step learns: features, the model, checks of the data."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

import torch
from accelerate import Accelerator

from ..configs import FeaturesConfig
from ..data.checked import references_of
from ..data.datasets import Datasets
from ..features import extract
from ..features.store import FeatureStore
from ..model import Model
from ..parts import Dataset, Metric, Picture
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.model_files import build_model, features_file
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of
from ..tensors import Example


def title(recipe: Recipe) -> str:
    """What a run is called."""
    return f"{recipe.name}{f', profile {recipe.profile}' if recipe.profile else ''}, seed {recipe.seed}"


def introduce(recipe: Recipe, dataset: Dataset, progress: Progress) -> None:
    """What a person should know before it starts."""
    counts = ", ".join(f"{split} {len(dataset.split(split))}" for split in dataset.splits())
    progress.say(f"data: {recipe.data.type} ({counts})")


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


def begin(recipe: Recipe, step: str, model: Model, given: Collection[str] = ()) -> None:
    """Heads that no step before this one has learnt begin from the weights that it starts with. `given`: names of
    published weights that are in the model; a head among them has begun."""
    *before, own = recipe.chain(step)
    learnt = {name for earlier in before for name in recipe.steps[earlier].objectives}
    for name in recipe.steps[own].objectives:
        if name not in learnt and not any(key.startswith(f"objectives.{name}.") for key in given):
            with torch.random.fork_rng(), torch.no_grad():
                model.objective(name).begin(model)
