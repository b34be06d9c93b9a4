"""Load: a finished run's recipe, and the model of one of its steps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from ..configs import EmbedderConfig, FeaturesConfig
from ..decoding import Decoding
from ..errors import DataError, RecipeError, RunError
from ..evaluation.generate import generate
from ..evaluation.predict import predict
from ..files import read_table
from ..model import Model
from ..parts import FailedImage
from ..recipe.layers import setting_table
from ..recipe.load import changed
from ..recipe.messages import in_words
from ..recipe.tables import GENERATOR, Recipe
from ..registry import Registry, installed
from ..storage.model_files import build_model, features_file
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of, load_step
from ..tensors import Example, Generation, Prediction
from .predictor import Asker
from .query import Query

OF_AN_INPUT = ("extractor", "features", "allow_other_features")  # what may be changed of one that has learnt


@dataclass
class Run:
    """A finished run (or one that goes on), loaded: its recipe, and the model of one of its steps."""

    folder: RunFolder
    recipe: Recipe
    step: str
    model: Model
    asker: Asker = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.asker = Asker(self.recipe, self.step, self.model, self.folder.path)

    def ask(
        self, picture: Any = None, /, *, n: int = 1, options: Decoding | None = None, **inputs: Any
    ) -> list[Generation]:
        """`n` texts about a picture, or whatever else the step reads, best first.

            run.ask("photo.jpg", caption="a dog on a beach", n=5)

        picture  its path, an opened image, a key of the run's own features, or features (`mmgen.parts.Record`)
        n        how many different texts: diverse beam search
        options  another search instead, with its own num_return_sequences
        inputs   values by input, or by the field that an input reads

        The extractor is built at the first picture and kept; any number of threads may call. Raises DataError for what
        cannot be read, is unknown or is missing, UnavailableError where a picture cannot become features."""
        queries = [Query("this query", {**inputs}, picture)]
        ((_, outcome),) = self.asker.answers(queries, options or different(n))
        if isinstance(outcome, FailedImage):
            raise DataError(outcome.reason)
        return outcome

    def generate(self, examples: Sequence[Example], options: Decoding | None = None) -> list[list[Generation]]:
        """Texts for examples as this step reads them, best first. `options` default to the recipe's. Raises RunError
        for a step that writes none."""
        _, kind = self._predicts()
        if kind != "text":
            raise RunError(f"the step '{self.step}' predicts {kind}s and writes no texts; use predict")
        return generate(self.model, examples, options or self.recipe.decoding, self.recipe.steps[self.step].inputs)

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """What this step predicts for examples, where that is no text; their labels are not looked at. Raises RunError
        for a step that writes."""
        objective, kind = self._predicts()
        if kind == "text":
            raise RunError(f"the step '{self.step}' writes texts; use generate")
        return predict(self.model, examples, objective, self.recipe.steps[self.step].inputs)

    def _predicts(self) -> tuple[str, str]:
        """Which objective makes this step's predictions, and of which kind: a step that only trains writes."""
        return self.recipe.predicts(self.step) or (GENERATOR, "text")


def different(n: int) -> Decoding:
    """How n different texts are looked for: diverse beam search, two beams a group. Raises DataError."""
    if not isinstance(n, int) or n < 1:
        raise DataError(f"n is {n!r}; it is how many texts to write, a whole number from 1 on")
    if n == 1:
        return Decoding()
    return Decoding(num_beams=2 * n, num_beam_groups=n, diversity_penalty=1.0, num_return_sequences=n)


def load_run(
    path: str | Path, step: str | None = None, registry: Registry | None = None, sets: Sequence[str] = ()
) -> Run:
    """The model of a run's step (by default the last one that has weights), in eval mode, on the GPU where there is
    one. `sets`: settings laid over the run's recipe, of what is not learnt: decoding, and where an input's features
    come from. Raises RunError."""
    folder, registry = RunFolder(Path(path)), registry or installed()
    recipe = folder.recipe(registry)
    if sets:
        recipe = changed(recipe, sets, registry)
        for setting in sets:
            _refuse_learnt(setting)
    trained = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    if not trained:
        raise RunError(f"{path}: no step has been learnt yet; go on with `mmgen run`")
    chosen = step or ([name for name in trained if recipe.steps[name].evaluate] or trained)[-1]
    if chosen not in trained:
        raise RunError(f"{path}: no weights of a step '{chosen}'; there are: {', '.join(trained)}")
    path_kept = folder.path / "inputs.json"
    read = inputs_of(recipe, [chosen])
    there = [name for name in recipe.inputs if name in read_table(path_kept) or name in read]
    kept = read_table(path_kept, **dict.fromkeys(there, dict))
    inputs: dict[str, EmbedderConfig] = {}
    for name in there:  # a run of one step alone has not built what it does not read
        config = recipe.inputs[name]
        made = None
        if isinstance(config, FeaturesConfig) and config.extractor is not None and config.features is None:
            made = features_file(config.extractor, recipe, folder)
        features = {"features": made} if made and made.exists() else {}
        inputs[name] = as_kept(config, kept[name], path_kept, name).model_copy(update=features)
    model = build_model(recipe.model_copy(update={"inputs": inputs}), folder=folder.backbone)
    for name, embedder in model.embedders.items():
        if json.loads(json.dumps(embedder.found_settings())) != kept[name]:
            raise RunError(
                f"{path_kept}: damaged: it does not hold all that '{name}' was learnt with; copy it from where the run "
                "was made"
            )
    load_step(model, recipe, folder, chosen)
    return Run(folder, recipe, chosen, model.eval().to("cuda" if torch.cuda.is_available() else "cpu"))


def _refuse_learnt(setting: str) -> None:
    """Raises RecipeError for a setting of what a finished run has learnt with."""
    table, _ = setting_table(setting)
    for name, value in table.items():
        inner = [key for each in value.values() if isinstance(each, dict) for key in each] if name == "inputs" else []
        if name != "decoding" and not (inner and set(inner) <= set(OF_AN_INPUT)):
            raise RecipeError(
                f"--set {setting}: this run has learnt with what it has; what can be changed is decoding.*, and an "
                f"input's {', '.join(OF_AN_INPUT)} (inputs.NAME.*)"
            )


def as_kept(config: EmbedderConfig, kept: Mapping[str, Any], path: Path, name: str) -> EmbedderConfig:
    """An embedder's config with what its run keeps of it. Raises RunError when that cannot be."""
    try:
        return type(config).model_validate({**dict(config), **kept})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (name, *first["loc"])))
        raise RunError(f"{path}: damaged: {place}: {in_words(first)}") from None
