"""Before a run's first step: build its metrics, fill stores, start heads."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

import torch

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import seeded
from ..evaluation import score
from ..evaluation.references import reference_scores
from ..features import extract
from ..features.store import FeatureStore
from ..features.writer import remove_leftovers
from ..model import Model
from ..parts import Metric, Picture
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.model_files import features_file
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of
from ..training.distributed import Processes


def build_metrics(recipe: Recipe, datasets: Datasets, folder: RunFolder, device: torch.device) -> dict[str, Metric]:
    """The metrics of a run. Each scores the references now, for the folder; the table needs these scores only after
    training, but an error should stop the run earlier. Raises the metrics' errors, and PluginError."""
    scored = [step for step, settings in recipe.steps.items() if settings.evaluate]
    metrics = score.build_metrics(recipe, scored, datasets, device)
    reference_scores(recipe, scored, datasets, folder.path, metrics)
    return metrics


def with_inputs_of(recipe: Recipe, only: Sequence[str]) -> Recipe:
    """The recipe with the inputs that these steps and those before them read; () means all steps."""
    names = inputs_of(recipe, recipe.ordered(tuple(only)))
    return recipe.model_copy(update={"inputs": {name: recipe.inputs[name] for name in names}})


def fill_stores(
    recipe: Recipe, datasets: Datasets, folder: RunFolder, accelerator: Processes, progress: Progress
) -> Recipe:
    """Extract features for every input with an extractor and without a features file; the recipe with these files.

    A file is beside the folders of the seeds, which share it.
    """
    inputs = dict(recipe.inputs)
    for name, config in recipe.inputs.items():
        if not isinstance(config, FeaturesConfig) or config.extractor is None or config.features is not None:
            continue
        path = features_file(config.extractor, recipe, folder)
        if accelerator.is_main_process and has_all_pictures(path, pictures := list(datasets.pictures())):
            remove_leftovers(path)
        elif accelerator.is_main_process:  # broken pictures may have been repaired
            summary = extract.extract(
                config.extractor.build(), pictures, path, progress=progress, wait=True
            )  # another seed may be extracting
            for key, reason in summary.broken:
                progress.say(f"{name}: skipped picture '{key}': {reason}")
        accelerator.wait_for_everyone()
        inputs[name] = config.model_copy(update={"features": path})
    return recipe.model_copy(update={"inputs": inputs})


def has_all_pictures(path: Path, pictures: Sequence[Picture]) -> bool:
    """Whether a store exists and contains these pictures."""
    if not path.exists():
        return False
    with contextlib.closing(FeatureStore(path)) as store:
        return all(picture.key in store for picture in pictures)


def init_objectives(recipe: Recipe, step: str, model: Model, published_names: Collection[str] = ()) -> None:
    """Initialise the heads of a step that no earlier step has trained, from the step's initial weights.
    `published_names`: parameters with published weights; a head with such parameters is not initialised."""
    *before, last = recipe.chain(step)
    trained = {name for earlier in before for name in recipe.steps[earlier].objectives}
    for name in recipe.steps[last].objectives:
        if name not in trained and not any(key.startswith(f"objectives.{name}.") for key in published_names):
            with seeded(recipe.seed, f"objectives.{name}", "init_from_model"), torch.no_grad():
                model.objective(name).init_from_model(model)
