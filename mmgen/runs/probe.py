"""Probes of a run: selection of probes and steps; the trained models, and an untrained one to compare."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

from ..configs import ProbeConfig
from ..data.datasets import pictures_of
from ..data.seeds import resolve, seeded
from ..errors import MmgenError, RecipeError, RunError
from ..evaluation import probes as probing
from ..evaluation.answers import generate
from ..inference.load import load
from ..inference.predictor import Predictor
from ..model import Model
from ..parts import Picture, ProbeInput, ProbeResult, TrainedStep
from ..progress import Progress
from ..recipe.load import select_parts
from ..recipe.tables import Recipe
from ..registry import Registry, installed
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
    the run's `probes/NAME/`. `names`, `sets`: see `select_probes`. Raises RunError, RecipeError."""
    folder, registry = RunFolder(Path(path)), installed()
    recipe = folder.recipe(registry)
    probes = select_probes(recipe, names, sets, registry)
    recipe.check_steps(steps)
    trained = [name for name in recipe.steps if folder.finished(name, WEIGHTS)]
    untrained = [f"step '{name}' is not" for name in steps if not folder.trained(recipe, name)]
    if untrained or not trained:
        which = untrained[0] if untrained else "no step is"
        raise RunError(f"{folder.path}: {which} trained yet; continue with `mmgen run`")
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
    with folder.locked():
        return probing.probe(probes, probe_data, folder.path / "probes", recipe.seed)


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
