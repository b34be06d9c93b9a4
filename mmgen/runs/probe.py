"""Probes of a run: selection of probes and steps; the trained models, and an untrained one to compare."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..configs import ProbeConfig
from ..data.datasets import pictures_of
from ..data.seeds import resolve, seeded
from ..errors import MmgenError, RunError
from ..evaluation.answers import generate
from ..evaluation.probes import run_probe
from ..files import clear_partials, write_folder
from ..inference.load import load
from ..inference.predictor import Predictor
from ..model import Model
from ..parts import Picture, ProbeInput, ProbeResult, TrainedStep
from ..progress import Progress
from ..recipe.load import select_parts
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage import generations
from ..storage.run_folder import WEIGHTS, RunFolder


def probe(
    path: str | Path,
    names: Sequence[str] = (),
    *,
    steps: Sequence[str] = (),
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> dict[str, ProbeResult | MmgenError]:
    """Run probes on a run's steps (default: all trained steps); the results, or the error of each probe. Files are in
    the run's `probes/NAME/`. `names`, `sets`: see `recipe.load.select_parts`. Raises RunError, RecipeError."""
    folder, registry = RunFolder(Path(path)), installed()
    recipe = folder.recipe(registry)
    probes = select_parts(ProbeConfig, recipe.probes, names, sets, registry)
    recipe.check_steps(steps)
    trained = [name for name in recipe.steps if folder.finished(name, WEIGHTS)]
    if not trained or not all(folder.trained(recipe, name) for name in steps):
        raise RunError(f"{folder.path}: steps are not trained yet, only: {trained}; continue with `mmgen run`")
    dataset, pictures = recipe.data.build(), dict[str, Picture]()
    examples = [resolve(example) for example in dataset.split(recipe.data.test_split)]
    with contextlib.suppress(MmgenError):  # the data set has no pictures
        pictures = pictures_of(dataset, examples)
    probe_data = ProbeInput(
        [_trained_step(folder, recipe, name) for name in recipe.steps if name in (steps or trained)],
        examples,
        lambda: untrained_model(load(folder.path, trained[-1]), folder.backbone),
        pictures,
        progress or Progress(),
    )
    place, results = folder.path / "probes", dict[str, ProbeResult | MmgenError]()
    with folder.locked():
        clear_partials(place)
        for name, config in probes.items():
            try:  # a probe that fails leaves its earlier files unchanged
                results[name] = write_folder(place / name, partial(run_probe, config, name, probe_data, recipe.seed))
            except MmgenError as error:
                results[name] = error
    return results


def _trained_step(folder: RunFolder, recipe: Recipe, name: str) -> TrainedStep:
    inputs = tuple(input_name for input_name in recipe.inputs if input_name in recipe.steps[name].inputs)
    return TrainedStep(
        name,
        lambda: load(folder.path, name).model,
        inputs,
        generations.best(folder.step(name)) if folder.finished(name, generations.GENERATIONS) else {},
        list(recipe.steps).index(name),
        lambda model, examples: generate(model, examples, inputs=inputs),
    )


def untrained_model(run: Predictor, backbone: Path) -> Model:
    """The run's model without training: the encoder in its initial state, and the embedders' layers reinitialised. The
    statistics of the features (mean, deviation) stay. `backbone`: the folder with the encoder's sizes."""
    model, device = run.model, run.model.device
    model.cpu()  # a GPU draws different random numbers
    with seeded(run.recipe.seed, "untaught"):
        model.backbone.load_state_dict(run.recipe.backbone.build(folder=backbone).state_dict())
        for module in model.embedders.modules():
            if reset := getattr(module, "reset_parameters", None):
                reset()
    return model.to(device)
