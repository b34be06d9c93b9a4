"""Files of a run that describe its model besides weights; builds the model from them and gives it its pictures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..configs import ExtractorConfig, FeaturesConfig
from ..data.datasets import Datasets, PicturesByKey
from ..data.seeds import seeded
from ..errors import RunError
from ..files import read_table, write_folder, write_json
from ..model import Model, Objectives, compose, seeded_part
from ..recipe.tables import SOURCE_KEYS, Recipe
from .run_folder import RunFolder, differences

INPUTS = "inputs.json"  # in a run folder: the features that its inputs are trained on
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
            prepare_inputs(model, recipe, datasets)
    return model


def prepare_inputs(model: Model, recipe: Recipe, datasets: Datasets | Callable[[], Datasets]) -> None:
    """Give the inputs that read pictures those of the data sets, which a function may build when they are used."""
    pictures = PicturesByKey(datasets if callable(datasets) else lambda: datasets)
    for name, embedder in model.embedders.items():
        if recipe.inputs[name].takes == "picture":
            with seeded_part(f"inputs.{name}"):
                embedder.prepare(pictures)


def read_vocabularies(folder: Path) -> dict[str, tuple[str, ...]]:
    """The classes of a run's heads; empty for a run without the file. Raises RunError for a damaged file."""
    path = folder / VOCABULARIES
    if not path.exists():
        return {}
    tables = read_table(path, labels=dict)["labels"]
    if not all(
        isinstance(values, list) and all(isinstance(name, str) for name in values) for values in tables.values()
    ):
        raise RunError(f"{path}: damaged: 'labels' must be lists of strings; copy the file from where the run was made")
    return {name: tuple(values) for name, values in tables.items()}


def keep_parts(model: Model, folder: RunFolder, vocabularies: Mapping[str, tuple[str, ...]]) -> None:
    """Save what is needed to load the run without its original files."""
    if vocabularies:
        if (folder.path / VOCABULARIES).exists() and read_vocabularies(folder.path) != vocabularies:
            raise RunError(
                f"{folder.path}: the vocabularies of the data differ from those of the trained heads; use --fresh to "
                "start over"
            )
        write_json(
            folder.path / VOCABULARIES, {"labels": {name: list(values) for name, values in vocabularies.items()}}
        )
    write_folder(folder.backbone, model.backbone.save)
    settings = {name: embedder.inferred_settings() for name, embedder in model.embedders.items()}
    path, earlier = folder.path / INPUTS, {}
    if any(folder.path.glob("steps/*/*.safetensors")):
        earlier = read_table(path, **{name: dict for name in settings if name in read_table(path)})
        for name, before in earlier.items():
            now = json.loads(json.dumps(settings.get(name, before)))
            if before != now:
                changes = "; ".join(differences(before, now))
                raise RunError(
                    f"{folder.path}: the features of '{name}' differ from those the steps were trained on "
                    f"({changes}); restore them, or use --fresh to start over"
                )
    write_json(path, earlier | settings)


def features_file(extractor: ExtractorConfig, recipe: Recipe, folder: RunFolder) -> Path:
    """The file of the features that an extractor computes from the run's pictures. All inputs with this extractor share
    the file, which is named after the first of them. The rest of the name follows from the tables in recipe.json, whose
    paths stay as they are when the folder moves."""
    name = next(
        name
        for name, config in recipe.inputs.items()
        if isinstance(config, FeaturesConfig) and config.features is None and config.extractor == extractor
    )
    tables = read_table(folder.path / "recipe.json", data=dict, steps=dict)
    data = [tables["data"], *(table for step in tables["steps"].values() for table in _data_sets(step.get("data")))]
    fingerprint = read_table(folder.path / "data.json", fingerprint=str)["fingerprint"]
    made_from = json.dumps([extractor.model_dump(mode="json"), *data, fingerprint], sort_keys=True)
    return folder.path.parent / "features" / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}.h5"


def _data_sets(saved: Any) -> list[dict[str, Any]]:
    """The data sets of a saved step, one or several."""
    several = saved if isinstance(saved, list) else [saved] if saved is not None else []
    return [{key: value for key, value in table.items() if key not in SOURCE_KEYS} for table in several]
