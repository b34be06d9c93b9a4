"""Model files: what a run folder keeps of its model beside the weights, and the model that is built from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..configs import ExtractorConfig, FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import seeded
from ..errors import MmgenError, RunError
from ..files import read_table, write_folder, write_json
from ..model import Model, Objectives, compose
from ..recipe.tables import SOURCE_KEYS, Recipe
from .run_folder import RunFolder, differences

INPUTS = "inputs.json"  # in a run folder: which features its inputs learn from
LABELS = "labels.json"  # in a run folder: what its heads choose from


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


def read_labels(folder: Path) -> dict[str, tuple[str, ...]]:
    """What a run's heads choose from; runs without labels have no such file. Raises RunError for a damaged one."""
    path = folder / LABELS
    if not path.exists():
        return {}
    tables = read_table(path, labels=dict)["labels"]
    if not all(isinstance(values, list) and all(isinstance(one, str) for one in values) for values in tables.values()):
        raise RunError(f"{path}: damaged: it holds no lists of texts; copy it from where the run was made")
    return {name: tuple(values) for name, values in tables.items()}


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
    return path if path.exists() else _features_by_saved_recipe(name, extractor, data, fingerprint, folder) or path


def _features_path(name: str, made_from: str, folder: RunFolder) -> Path:
    return folder.path.parent / "features" / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}.h5"


def _features_by_saved_recipe(
    name: str, extractor: ExtractorConfig, now: Sequence[Any], fingerprint: str, folder: RunFolder
) -> Path | None:
    """The file whose name follows from recipe.json as it stands: paths are written otherwise in another folder than the
    run's first."""
    try:
        tables = read_table(folder.path / "recipe.json", data=dict, steps=dict)
        own = [data for step in tables["steps"].values() for data in _data_sets(step.get("data"))]
    except (MmgenError, AttributeError):  # whoever needs the recipe says what is wrong with it
        return None
    data = [tables["data"], *own]
    if _without_texts(data) != _without_texts(now):
        return None  # other pictures
    made_from = [extractor.model_dump(mode="json"), *data, fingerprint]
    path = _features_path(name, json.dumps(made_from, sort_keys=True), folder)
    return path if path.exists() else None


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
