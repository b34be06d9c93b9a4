"""Exports as predictors: config.json to parts, weights into them, extractors. Reads nothing outside of the folder."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # encoders import it too, but torch 2.6 cannot import it inside of torch.device("meta")

from .. import __version__
from ..configs import DatasetConfig, FeaturesConfig, TableColumns
from ..data.seeds import seeded
from ..errors import DataError, MmgenError, PluginError, RunError, placed
from ..features.uninitialised import Uninitialised
from ..model import Model, Objectives, compose
from ..parts import Dataset
from ..recipe.layers import Layered, setting_table
from ..recipe.parse import parse
from ..recipe.tables import Recipe
from ..registry import OURS, Part, Registry, Source, conflict
from ..storage.exports import (
    BACKBONE,
    COMPLETE,
    CONFIG,
    EXTRACTORS,
    WEIGHTS,
    read_config,
    read_vocabularies,
    read_weights,
    shapes,
)
from ..storage.library_settings import check_library_settings
from ..storage.weights import load_state, state
from .export import PARTS
from .predictor import Predictor

LONGEST = 80  # characters of what an export says that it is trained on
NAMES_OF_PARTS = {"backbone": "backbone", "generator": "generator", "inputs": "embedder", "objectives": "objective"}


class NoData(DatasetConfig):
    """Stands for the data of an export, which has none."""

    type: str = "none"
    columns: TableColumns = TableColumns()

    def table_columns(self) -> TableColumns:
        return self.columns

    def build(self) -> Dataset:
        raise DataError("an export has no data; name a recipe with data: --data RECIPE")


def load_export(folder: Path, registry: Registry, sets: Sequence[str] = ()) -> Predictor:
    """The predictor of an export, on the CPU. `sets`: overrides of its decoding and extractors. Raises RunError for a
    damaged folder or one of a newer version, and PluginError for a plugin that is not installed."""
    path = folder / CONFIG
    config = read_config(folder)
    _check_plugins(config, path, registry)
    for place in (BACKBONE, EXTRACTORS):
        check_library_settings(folder / place)
    overridden = _overridden_extractors(sets)
    for name in overridden & {*config["inputs"]}:
        config["inputs"][name]["extractor"] = None  # no setting of the folder may choose what is fetched
    recipe = recipe_of_export(config, path, registry, sets)
    with placed(path):
        model = _build_model(recipe, folder, config["encoder_prefix"])
    load_state(model, read_weights(folder, config["encoder_prefix"]), folder)
    extractors = _saved_extractors(recipe, folder, overridden)
    predictor = Predictor(model, recipe, config["step"], where=str(folder), extractors=extractors)
    predictor.trained_on = config.get("trained_on", "")[:LONGEST]
    return predictor


def _overridden_extractors(sets: Sequence[str]) -> set[str]:
    """The inputs whose extractor is set on the command line."""
    tables = [setting_table(setting)[0].get("inputs", {}) for setting in sets]
    return {
        name
        for table in tables
        for name, settings in table.items()
        if isinstance(settings, dict) and "extractor" in settings
    }


def _saved_extractors(recipe: Recipe, folder: Path, overridden: set[str]) -> dict[str, Path]:
    """Input -> the folder of its saved extractor, for inputs whose extractor is not overridden. Raises RunError."""
    places = {}
    for name, settings in recipe.inputs.items():
        extractor = settings.extractor if isinstance(settings, FeaturesConfig) else None
        if extractor is not None and name not in overridden:
            places[name] = folder / EXTRACTORS / name
            if not places[name].is_dir():
                raise RunError(f"{places[name]}: missing; {COMPLETE}")
    return places


def recipe_of_export(config: Mapping[str, Any], path: Path, registry: Registry, sets: Sequence[str] = ()) -> Recipe:
    """A recipe with the one step of an export. Raises RunError for a config that no part accepts, and RecipeError for
    `sets` that none accepts."""
    tables = {table: config[table] for table in PARTS if table in config}
    step = {
        "inputs": config["step_inputs"],
        "train": ["backbone"],
        "objectives": config["step_objectives"],
        "evaluate": False,
    }
    data = {"type": "none", "columns": config.get("columns", {})}
    values = {**tables, "name": str(config.get("name")), "steps": {config["step"]: step}, "data": data}
    stand_in = Part("dataset", "none", NoData, Source("none", OURS, __version__))
    registry = Registry((*registry.parts, stand_in), registry.broken)

    def resolve_with(sets: Sequence[str]) -> Recipe:
        layers = Layered(copy.deepcopy(values))
        for setting in sets:
            layers.lay(*setting_table(setting))
        return parse(layers, registry, None, str(path), stored=True)

    try:
        recipe = resolve_with(())
    except MmgenError as error:
        first, _, rest = str(error).partition("\n")
        more = f" (and {rest.count(chr(10)) + 1} more)" if rest else ""
        raise RunError(
            f"{first}{more}; the export is damaged, or was written with another version of a plugin"
        ) from None
    return resolve_with(sets) if sets else recipe


def _check_plugins(config: Mapping[str, Any], path: Path, registry: Registry) -> None:
    """Raises PluginError for a part that no installed plugin provides, with what the folder says it needs."""
    parts = []
    for table, kind in NAMES_OF_PARTS.items():
        value = config.get(table)
        tables = list(value.values()) if table in ("inputs", "objectives") and isinstance(value, dict) else [value]
        parts += [
            (kind, inner["type"]) for inner in tables if isinstance(inner, dict) and isinstance(inner.get("type"), str)
        ]
    for kind, name in parts:
        if installed_parts := registry.by_name(kind).get(name):
            if len(installed_parts) > 1:
                raise PluginError(f"{path}: {conflict(installed_parts)}")
            continue
        claimed = [
            f"{distribution} {entry['version']}"
            for distribution, entry in config["plugins"].items()
            if f"{kind} {name}" in entry["parts"]
        ]
        by = (
            f"; the folder names {' '.join(claimed[0].split()):.80} for it: install that only if you trust its source"
            if claimed
            else ""
        )
        raise PluginError(f"{path}: needs the {kind} '{name}', which no installed plugin provides{by}")


def _build_model(recipe: Recipe, folder: Path, prefix: str) -> Model:
    """The model, with fresh weights. Names and shapes are compared with the files before memory is taken."""
    vocabularies = read_vocabularies(folder)

    def build() -> Model:
        with seeded(recipe.seed, "model"):
            return compose(
                recipe.backbone,
                recipe.inputs,
                recipe.generator,
                folder=folder / BACKBONE,
                sequence=recipe.sequence,
                objectives=Objectives(recipe.objectives, vocabularies),
            )

    with torch.device("meta"):
        blank = build()
    expected = {name: tuple(tensor.shape) for name, tensor in state(blank).items()}
    saved_shapes = shapes(folder, prefix)
    if differs := sorted(name for name in {*expected, *saved_shapes} if expected.get(name) != saved_shapes.get(name)):
        name = differs[0]
        place = folder / BACKBONE if prefix and name.startswith(prefix) else folder
        problem = f"has shape {saved_shapes.get(name)} in {WEIGHTS}, but {expected.get(name)} by {CONFIG}"
        problem = problem if name in saved_shapes else f"is missing in {WEIGHTS}, but expected by {CONFIG}"
        problem = problem if name in expected else f"is in {WEIGHTS}, but is not a weight of the model in {CONFIG}"
        raise RunError(f"{place}: {name} {problem}; one of the two files is damaged; {COMPLETE}")
    with Uninitialised():
        return build()  # while `blank` exists, whose tokenizer it takes
