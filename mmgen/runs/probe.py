"""Probes of a run: selection of probes and steps; the trained models, and an untrained one to compare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import torch

from ..configs import ProbeConfig
from ..data.datasets import pictures_of
from ..data.seeds import resolve, seeded
from ..errors import MmgenError, RecipeError, RunError
from ..evaluation import probes as probing
from ..evaluation.generate import generate
from ..inference.export_with_data import DataSource, predictions_of, with_data
from ..inference.load import load_run
from ..inference.predictor import Predictor
from ..model import Model
from ..parts import Dataset, Picture, ProbeInput, ProbeResult, TrainedStep
from ..progress import Progress
from ..recipe.select_parts import select_parts
from ..recipe.tables import Recipe
from ..registry import Registry, installed
from ..storage import generations
from ..storage.exports import BACKBONE
from ..storage.run_folder import RunFolder
from ..tensors import Example, Generation


def probe(
    path: str | Path,
    names: Sequence[str] = (),
    *,
    steps: Sequence[str] = (),
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> dict[str, ProbeResult | MmgenError]:
    """Run probes on a run's steps (default: all trained steps); the results, or the error of each probe. Files are in
    the run's `probes/NAME/`. `names`, `sets`: see `select_probes`. Raises RunError, RecipeError."""
    folder, registry = RunFolder(Path(path)), installed()
    recipe = folder.recipe(registry, probes=not names)
    probes = select_probes(recipe, names, sets, registry)
    probe_data = probe_input(folder, recipe, steps, progress or Progress())
    with folder.locked():
        return probing.probe(probes, probe_data, folder.path / "probes", recipe.seed)


def probe_export(
    where: str | Path,
    source: DataSource,
    folder: Path,
    names: Sequence[str] = (),
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> dict[str, ProbeResult | MmgenError]:
    """Run probes on an export with the data of a recipe, by default the probes of that recipe; files are in
    `folder`/NAME/. `names`, `sets`: see `select_probes`. Raises RunError, RecipeError, DataError."""
    progress = progress or Progress()
    with with_data(where, source, progress=progress) as export:
        probes = select_probes(export.recipe, names, sets, installed())
        predictor, step = export.load(), export.step
        inputs, texts = tuple(predictor.names.inputs), {}
        if predictor.kind == "text":
            outcomes = predictions_of(predictor, export.examples, progress)
            texts = {outcome.id: outcome for outcome in outcomes if isinstance(outcome, Generation)}
        trained = TrainedStep(
            step,
            lambda: _to_device(predictor.model),
            inputs,
            texts,
            0,
            lambda model, examples: generate(model, examples, inputs=inputs),
        )
        probe_data = ProbeInput(
            [trained],
            [resolve(example) for example in export.examples],
            lambda: untrained_model(export.load(), export.folder / BACKBONE),
            _pictures_of(export.datasets.dataset_of(step), export.examples),
            progress,
        )
        return probing.probe(probes, probe_data, folder, export.recipe.seed)


def select_probes(
    recipe: Recipe, names: Sequence[str], sets: Sequence[str], registry: Registry
) -> dict[str, ProbeConfig]:
    """The recipe's probes, or the named ones: of the recipe, or else installed ones with defaults. `sets`: overrides,
    such as "attention.layer=1". Raises RecipeError."""
    probes = select_parts(ProbeConfig, recipe.probes, names, sets, registry)
    for name in probes:
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise RecipeError(
                f"probes.{name}: the name of a probe must consist of letters, digits, '_', '-' and '.', because it "
                "names a folder"
            )
    return probes


def probe_input(folder: RunFolder, recipe: Recipe, steps: Sequence[str], progress: Progress) -> ProbeInput:
    """The steps, examples and pictures of a run, for its probes."""
    finished_steps = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    recipe.check_steps(steps)
    for name in steps:
        if name not in finished_steps:
            raise RunError(f"{folder.path}: step '{name}' is not trained yet; continue with `mmgen run`")
    if not finished_steps:
        raise RunError(f"{folder.path}: no step is trained yet; continue with `mmgen run`")
    dataset = recipe.data.build()
    examples = [resolve(example) for example in dataset.split(recipe.data.test_split)]
    trained = [_trained_step(folder, recipe, name) for name in finished_steps if not steps or name in steps]
    return ProbeInput(
        trained,
        examples,
        lambda: untrained_model(load_run(folder.path, finished_steps[-1]), folder.backbone),
        _pictures_of(dataset, examples),
        progress,
    )


def _trained_step(folder: RunFolder, recipe: Recipe, name: str) -> TrainedStep:
    step = recipe.steps[name]
    texts = generations.best(folder.step(name)) if folder.finished(name, "generations.jsonl") else {}
    inputs = tuple(input_name for input_name in recipe.inputs if input_name in step.inputs)
    place = list(recipe.steps).index(name)
    return TrainedStep(
        name,
        lambda: _to_device(load_run(folder.path, name).model),
        inputs,
        texts,
        place,
        lambda model, examples: generate(model, examples, inputs=inputs),
    )


def _to_device(model: Model) -> Model:
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def untrained_model(run: Predictor, backbone: Path) -> Model:
    """The run's model without training: the encoder in its initial state, and the embedders' layers reinitialised. The
    statistics of the features (mean, deviation) stay. `backbone`: the folder with the encoder's sizes."""
    run.model.cpu()  # a GPU draws different random numbers
    with seeded(run.recipe.seed, "untaught"):
        run.model.backbone.load_state_dict(run.recipe.backbone.build(folder=backbone).state_dict())
        for embedder in run.model.embedders.values():
            for module in embedder.modules():
                reset = getattr(module, "reset_parameters", None)
                if reset is not None:
                    reset()
    return _to_device(run.model)


def _pictures_of(dataset: Dataset, examples: Sequence[Example]) -> dict[str, Picture]:
    """The examples' pictures by key; empty if the data set has no pictures."""
    try:
        return pictures_of(dataset, examples)
    except MmgenError:
        return {}
