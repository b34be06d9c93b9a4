"""Files of a run that describe its model besides weights; builds the model from them and gives it its pictures; the
weights of a step, for a model with more or fewer inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ..configs import ExtractorConfig, FeaturesConfig
from ..data.datasets import Datasets, PicturesByKey
from ..data.seeds import seeded
from ..errors import RunError
from ..features.fingerprints import differences
from ..files import read_table, write_folder, write_json
from ..model import EMBEDDERS, Model, Objectives, compose, seeded_part
from ..recipe.tables import Recipe
from .run_folder import RunFolder
from .weights import load_state, read_tensors, state

INPUTS = "inputs.json"  # in a run folder: the features that its inputs are trained on
EXTRACTORS = "extractor"  # in an export: a folder for each input, with the network that computes its features
VOCABULARIES = "labels.json"  # in a run folder: the classes of its heads


def build_model(recipe: Recipe, datasets: Datasets | None = None, folder: Path | None = None) -> Model:
    """The initial model: from the recipe and its seed, or from the files in a run's `folder`."""
    texts = datasets.texts() if datasets else None
    vocabularies = datasets.vocabularies() if datasets else read_vocabularies(folder.parent) if folder else {}
    with seeded(recipe.seed, "model"):
        model = compose(
            recipe.backbone,
            recipe.inputs,
            recipe.generator,
            texts=texts,
            folder=folder,
            sequence=recipe.sequence,
            objectives=Objectives(recipe.objectives, vocabularies),
        )
        if datasets is not None:
            prepare_inputs(model, recipe, lambda: datasets)
    return model


def prepare_inputs(model: Model, recipe: Recipe, datasets: Callable[[], Datasets]) -> None:
    """Give the inputs that read pictures those of the data sets, which are built when they are used."""
    pictures = PicturesByKey(datasets)
    for name, embedder in model.embedders.items():
        if recipe.inputs[name].takes == "picture":
            with seeded_part(f"inputs.{name}"):
                embedder.prepare(pictures)


def read_vocabularies(folder: Path) -> dict[str, tuple[str, ...]]:
    """The classes of a run's heads; empty for a run without the file. Raises RunError for a damaged file."""
    path = folder / VOCABULARIES
    saved = read_table(path, labels=dict)["labels"] if path.exists() else {}
    return {name: tuple(values) for name, values in saved.items()}


def write_model_files(
    model: Model, folder: RunFolder, inputs: Mapping[str, Any], vocabularies: Mapping[str, tuple[str, ...]]
) -> None:
    """Write what is needed to build the model without its original files. `inputs`: what `inputs.json` holds."""
    if vocabularies:
        write_json(folder.path / VOCABULARIES, {"labels": {name: [*values] for name, values in vocabularies.items()}})
    write_folder(folder.backbone, model.backbone.save)
    write_json(folder.path / INPUTS, inputs)


def keep_parts(model: Model, folder: RunFolder, vocabularies: Mapping[str, tuple[str, ...]]) -> None:
    """Save what is needed to load the run without its original files. Raises RunError if trained steps have seen other
    features."""
    settings = json.loads(json.dumps({name: part.inferred_settings() for name, part in model.embedders.items()}))
    path = folder.path / INPUTS
    earlier = read_table(path) if path.exists() and any(folder.path.glob("steps/*/*.safetensors")) else {}
    for name, before in earlier.items():
        if changes := differences(before, settings.get(name, before)):
            raise RunError(
                f"{folder.path}: the features of '{name}' differ from those the steps were trained on "
                f"({'; '.join(changes)}); restore them, or use --fresh to start over"
            )
    write_model_files(model, folder, earlier | settings, vocabularies)


def features_file(extractor: ExtractorConfig, recipe: Recipe, folder: RunFolder) -> Path:
    """The store of the features that an extractor computes from the run's pictures. All inputs with this extractor
    share the folder, which is named after the first of them. The rest of the name follows from the tables in
    recipe.json, whose paths stay as they are when the folder moves."""
    name = next(
        name
        for name, config in recipe.inputs.items()
        if isinstance(config, FeaturesConfig) and config.features is None and config.extractor == extractor
    )
    tables = read_table(folder.path / "recipe.json", data=dict, steps=dict)
    data = [tables["data"], *(step["data"] for step in tables["steps"].values() if step.get("data"))]
    made_from = json.dumps([extractor.model_dump(mode="json"), data, folder.fingerprint()], sort_keys=True)
    return folder.path.parent / "features" / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}"


def read_step(recipe: Recipe, folder: RunFolder, step: str) -> dict[str, Tensor]:
    """The tensors of a step, or of the step that has trained its weights. Raises RunError."""
    return read_tensors(folder.weights(recipe.trained_by(step)))[0]


def load_step(
    model: Model, recipe: Recipe, folder: RunFolder, step: str, built: Mapping[str, Tensor] | None = None
) -> None:
    """Load the weights of a step into a model that goes on training. Raises RunError.

    Tensors of an input or an objective that the step and its ancestors neither read nor train are taken from `built`,
    by default the model's, if the file lacks them, and ignored if the model does."""
    tensors, initial = read_step(recipe, folder, step), state(model) if built is None else built
    spare = tuple(prefix for prefix, needed in _parts(recipe, step).items() if not needed)
    known = {key: tensor for key, tensor in tensors.items() if key in initial or not key.startswith(spare)}
    filled = {key: tensor for key, tensor in initial.items() if key.startswith(spare)} | known
    load_state(model, filled, folder.weights(recipe.trained_by(step)))


def parts_in_weights(recipe: Recipe, step: str, tensors: Collection[str]) -> tuple[list[str], list[str]]:
    """The inputs and the objectives of the model that a step's weights belong to, by the names of its tensors."""
    prefixes = {
        prefix
        for prefix, needed in _parts(recipe, step).items()
        if needed or any(name.startswith(prefix) for name in tensors)
    }
    return (
        [name for name in recipe.inputs if f"{EMBEDDERS}{name}." in prefixes],
        [name for name in recipe.objectives if f"objectives.{name}." in prefixes],
    )


def _parts(recipe: Recipe, step: str) -> dict[str, bool]:
    """The prefix of every input's and objective's tensors, and whether the step or its ancestors use it."""
    read = inputs_of(recipe, [step])
    trained = {name for ancestor in recipe.chain(step) for name in recipe.steps[ancestor].objectives}
    return {
        **{f"{EMBEDDERS}{name}.": name in read for name in recipe.inputs},
        **{f"objectives.{name}.": name in trained for name in recipe.objectives},
    }


def inputs_of(recipe: Recipe, steps: Iterable[str]) -> list[str]:
    """The inputs that these steps and their ancestors read, in the recipe's order."""
    read = {name for step in steps for ancestor in recipe.chain(step) for name in recipe.steps[ancestor].inputs}
    return [name for name in recipe.inputs if name in read]
