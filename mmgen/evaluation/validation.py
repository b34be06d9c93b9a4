"""Scores of a step's present weights on validation examples, while it trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..model import Model
from ..parts import Metric
from ..progress import Progress
from ..recipe.tables import Recipe
from ..tensors import Example, Generation, Prediction
from ..training.context import StepContext
from .generate import split_texts
from .predict import split_predictions
from .score import score_predictions


@dataclass(frozen=True)
class ValidationScores:
    """Predicts and scores validation examples as a step's test examples are. All processes call it; the scores by
    column are in the main process."""

    recipe: Recipe
    context: StepContext
    examples: Sequence[Example]
    metrics: Mapping[str, Metric]

    def __call__(self, model: Model) -> Mapping[str, float | None]:
        name, context = self.context.name, replace(self.context, progress=Progress())  # training has the progress bar
        predicts = self.recipe.predicts(name)
        assert predicts is not None  # `runs.gaps` refuses other steps
        objective, kind = predicts
        predictions: Sequence[Generation] | Sequence[Prediction]
        if kind == "text":
            written = split_texts(model, context, self.examples, self.recipe.decoding)
            predictions = [texts[0] for texts in written]
        else:
            predictions = split_predictions(model, context, self.examples, objective)
        if not context.accelerator.is_main_process:
            return {}
        scores = score_predictions(
            name, predictions, self.examples, self.metrics, context.folder / "log.jsonl", context.progress
        )
        return scores.values
