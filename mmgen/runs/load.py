"""Load: a finished run's recipe, and the model of one of its steps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..configs import EmbedderConfig
from ..decoding import Decoding
from ..errors import RunError
from ..evaluation.generate import generate
from ..files import read_table
from ..model import Model
from ..recipe.tables import Recipe
from ..registry import Registry, installed
from ..storage.run_folder import RunFolder
from ..storage.weights import load_weights
from ..tensors import Example, Generation
from .prepare import build_model, features_file


@dataclass
class Run:
    """A finished run (or one that goes on), loaded: its recipe, and the model of one of its steps."""

    folder: RunFolder
    recipe: Recipe
    step: str
    model: Model

    def generate(self, examples: Sequence[Example], options: Decoding | None = None) -> list[list[Generation]]:
        """Texts for examples as this step reads them, best first. `options` default to the recipe's."""
        return generate(self.model, examples, options or self.recipe.decoding, self.recipe.steps[self.step].inputs)


def load_run(path: str | Path, step: str | None = None, registry: Registry | None = None) -> Run:
    """The model of a run's step (by default the last one that has weights), in eval mode. Raises RunError."""
    folder = RunFolder(Path(path))
    recipe = folder.recipe(registry or installed())
    trained = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    if not trained:
        raise RunError(f"{path}: no step has been learnt yet; go on with `mmgen run`")
    chosen = step or ([name for name in trained if recipe.steps[name].evaluate] or trained)[-1]
    if chosen not in trained:
        raise RunError(f"{path}: no weights of a step '{chosen}'; there are: {', '.join(trained)}")
    path_kept = folder.path / "inputs.json"
    kept = read_table(path_kept, **dict.fromkeys(recipe.inputs, dict))
    inputs: dict[str, EmbedderConfig] = {}
    for name, config in recipe.inputs.items():
        extractor = getattr(config, "extractor", None)
        made = extractor is not None and config.features is None and features_file(name, extractor, recipe, folder)
        features = {"features": made} if made and made.exists() else {}
        inputs[name] = as_kept(config, kept[name], path_kept, name).model_copy(update=features)
    model = build_model(recipe.model_copy(update={"inputs": inputs}), folder=folder.backbone)
    for name, embedder in model.embedders.items():
        if json.loads(json.dumps(embedder.found_settings())) != kept[name]:
            raise RunError(
                f"{path_kept}: damaged: it does not hold all that '{name}' was learnt with; copy it from where the run "
                "was made"
            )
    load_weights(model, folder.step(chosen) / "weights.safetensors")
    return Run(folder, recipe, chosen, model.eval())


def as_kept(config: EmbedderConfig, kept: Mapping[str, Any], path: Path, name: str) -> EmbedderConfig:
    """An embedder's config with what its run keeps of it. Raises RunError when that cannot be."""
    try:
        return type(config).model_validate({**dict(config), **kept})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (name, *first["loc"])))
        raise RunError(f"{path}: damaged: {place}: {first['msg']}") from None
