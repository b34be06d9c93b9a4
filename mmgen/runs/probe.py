"""Probes on a run: which, on which of its steps; the models they look into, and one that has learnt nothing."""

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
from ..inference.load import load_run
from ..inference.predictor import Predictor
from ..model import Model
from ..parts import Dataset, Picture, ProbeInput, ProbeResult, TrainedStep
from ..progress import Progress
from ..recipe import choice
from ..recipe.tables import Recipe
from ..registry import Registry, did_you_mean, installed
from ..storage import generations
from ..storage.run_folder import RunFolder
from ..tensors import Example


def probe(
    path: str | Path,
    names: Sequence[str] = (),
    *,
    steps: Sequence[str] = (),
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> dict[str, ProbeResult | MmgenError]:
    """What probes find in a run's steps (by default all that have weights), or why one finds nothing. Files are in the
    run's `probes/NAME/`. `names`, `sets`: see `chosen`. Raises RunError, RecipeError."""
    folder, registry = RunFolder(Path(path)), installed()
    recipe = folder.recipe(registry, probes=not names)
    probes = chosen(recipe, names, sets, registry)
    looked = subject(folder, recipe, steps, progress or Progress())
    with folder.locked():
        return probing.probe(probes, looked, folder.path / "probes", recipe.seed)


def chosen(recipe: Recipe, names: Sequence[str], sets: Sequence[str], registry: Registry) -> dict[str, ProbeConfig]:
    """The recipe's probes, or those named: of the recipe, or else of those installed, with their defaults. `sets`:
    their settings, such as "attention.layer=1". Raises RecipeError."""
    found = choice.select_parts(ProbeConfig, recipe.probes, names, sets, registry)
    for name in found:
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise RecipeError(
                f"probes.{name}: a probe's name is made of letters, digits, '_', '-' and '.': it names a folder"
            )
    return found


def subject(folder: RunFolder, recipe: Recipe, steps: Sequence[str], progress: Progress) -> ProbeInput:
    """What probes are handed of a run."""
    learnt = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    for name in steps:
        if name not in recipe.steps:
            raise RunError(
                f"--step: there is no step '{name}'{did_you_mean(name, recipe.steps)}; there are: "
                f"{', '.join(recipe.steps)}"
            )
        if name not in learnt:
            raise RunError(f"{folder.path}: the step '{name}' has not been learnt yet; go on with `mmgen run`")
    if not learnt:
        raise RunError(f"{folder.path}: no step has been learnt yet; go on with `mmgen run`")
    dataset = recipe.data.build()
    examples = [resolve(example) for example in dataset.split(recipe.data.test_split)]
    trained = [_trained(folder, recipe, name) for name in learnt if not steps or name in steps]
    return ProbeInput(
        trained, examples, lambda: untaught(load_run(folder.path, learnt[-1])), _pictures(dataset, examples), progress
    )


def _trained(folder: RunFolder, recipe: Recipe, name: str) -> TrainedStep:
    step = recipe.steps[name]
    texts = generations.best(folder.step(name)) if folder.finished(name, "generations.jsonl") else {}
    inputs = tuple(each for each in recipe.inputs if each in step.inputs)
    place = list(recipe.steps).index(name)
    return TrainedStep(
        name,
        lambda: _placed(load_run(folder.path, name).model),
        inputs,
        texts,
        place,
        lambda model, examples: generate(model, examples, inputs=inputs),
    )


def _placed(model: Model) -> Model:
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def untaught(run: Predictor) -> Model:
    """The run's model, changed to one that has learnt nothing: the encoder as it is before weights are loaded into it,
    and the embedders' layers drawn anew; what was measured of the features (mean, deviation) stays."""
    assert run.folder is not None  # loaded from one
    run.model.cpu()  # a GPU would draw other numbers
    with seeded(run.recipe.seed, "untaught"):
        run.model.backbone.load_state_dict(run.recipe.backbone.build(folder=run.folder.backbone).state_dict())
        for embedder in run.model.embedders.values():
            for module in embedder.modules():
                reset = getattr(module, "reset_parameters", None)
                if reset is not None:
                    reset()
    return _placed(run.model)


def _pictures(dataset: Dataset, examples: Sequence[Example]) -> dict[str, Picture]:
    """The examples' pictures by key; none where the data set has none."""
    try:
        return pictures_of(dataset, examples)
    except MmgenError:
        return {}
