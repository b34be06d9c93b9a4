"""While a step trains: predictions for validation examples, their scores, and what callbacks show of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..data.seeds import resolve
from ..model import Model
from ..parts import Metric, Picture, ShownExample
from ..progress import Progress
from ..recipe.tables import Recipe
from ..tensors import Example, Generation, Prediction
from ..training.context import StepContext
from .generate import split_texts
from .predict import split_predictions
from .score import score_predictions


def predict_examples(
    recipe: Recipe, context: StepContext, model: Model, examples: Sequence[Example]
) -> Sequence[Generation] | Sequence[Prediction]:
    """The predictions of a step that trains, as for its test examples, in the first process. All processes call it."""
    silent = replace(context, progress=Progress())  # training has the progress bar
    predicts = recipe.predicts(context.name)
    assert predicts is not None  # the callers check it
    objective, kind = predicts
    if kind == "text":
        return [texts[0] for texts in split_texts(model, silent, examples, recipe.decoding)]
    return split_predictions(model, silent, examples, objective)


@dataclass(frozen=True)
class ShownPredictions:
    """Predicts the validation examples that callbacks show."""

    recipe: Recipe
    context: StepContext
    examples: Sequence[Example]
    pictures: Mapping[str, Picture]

    def __call__(self, model: Model) -> list[ShownExample]:
        predictions = predict_examples(self.recipe, self.context, model, self.examples)
        resolved = map(resolve, self.examples if predictions else ())
        return [
            ShownExample(example, prediction, self._pictures_of(example))
            for example, prediction in zip(resolved, predictions, strict=True)
        ]

    def _pictures_of(self, example: Example) -> tuple[Picture, ...]:
        keys = (value for field in example.inputs for value in example.shown(field) if isinstance(value, str))
        return tuple(self.pictures[key] for key in keys if key in self.pictures)


@dataclass(frozen=True)
class ValidationScores:
    """Predicts and scores validation examples as a step's test examples are. All processes call it; the scores by
    column are in the main process."""

    recipe: Recipe
    context: StepContext
    examples: Sequence[Example]
    metrics: Mapping[str, Metric]

    def __call__(self, model: Model) -> Mapping[str, float | None]:
        name, context = self.context.name, self.context
        predictions = predict_examples(self.recipe, context, model, self.examples)
        if not context.accelerator.is_main_process:
            return {}
        scores = score_predictions(
            name, predictions, self.examples, self.metrics, context.folder / "log.jsonl", Progress()
        )
        return scores.values
