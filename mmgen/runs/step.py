"""One step of a run: train it, write its texts or predictions, score them; what it shows and validates. Resumes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from .. import report
from ..data.datasets import Datasets, pictures_of
from ..errors import DataError, PluginError
from ..evaluation import generate, predict, score
from ..evaluation.validation import ShownPredictions, ValidationScores
from ..model import Model
from ..parts import Metric, Picture
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage import decodings, generations, predictions, start_weights
from ..storage.run_folder import RunFolder
from ..storage.step_weights import load_step
from ..storage.weights import load_state
from ..tensors import Generation, Prediction
from ..training import train
from ..training.context import StepContext
from .prepare import init_objectives
from .rewrite import score_again
from .start_from_weights import load_start

WEIGHTS = "weights.safetensors"  # in the folder of a trained step


def train_step(
    context: StepContext,
    recipe: Recipe,
    model: Model,
    initial: Mapping[str, Tensor],
    datasets: Datasets,
    folder: RunFolder,
) -> None:
    """Train a step, and write the texts or predictions of its test examples, as far as it is unfinished."""
    name, trained = context.name, folder.finished(context.name, WEIGHTS)
    if not trained:
        _train(context, recipe, model, initial, datasets, folder)
    predicts = recipe.predicts(name) if context.step.evaluate else None
    if predicts is None or folder.finished(name, "generations.jsonl" if predicts[1] == "text" else predictions.FILE):
        return
    if trained:
        load_step(model, recipe, folder, name, initial)
    if predicts[1] == "text":
        generate.generate_split(model, context, datasets.scored_by(name), recipe.decoding)
    else:
        predict.predict_split(model, context, datasets.scored_by(name), predicts[0])


def _train(
    context: StepContext,
    recipe: Recipe,
    model: Model,
    initial: Mapping[str, Tensor],
    datasets: Datasets,
    folder: RunFolder,
) -> None:
    """Train a step from the weights that it starts from. Afterwards, the model has its weights."""
    name, step, loaded = context.name, context.step, set[str]()
    if step.before is not None:
        load_step(model, recipe, folder, step.before, initial)
    else:
        load_state(model, initial, "the initial model")
        loaded = load_start(model, folder, name) if step.weights is not None else loaded
    init_objectives(recipe, name, model, loaded)
    watched = replace(context, predict=_shown_predictions(context, recipe, datasets))
    train.train(model, watched, [*datasets.sources(name).values()], _validation_scores(context, recipe, datasets))
    if context.accelerator.is_main_process:
        (context.folder / start_weights.WEIGHTS).unlink(missing_ok=True)


def _shown_predictions(context: StepContext, recipe: Recipe, datasets: Datasets) -> ShownPredictions | None:
    """The validation examples that callbacks show after every epoch; None if none asks, or the step predicts
    nothing."""
    count = max((callback.num_examples for callback in recipe.callbacks.values()), default=0)
    if not count or recipe.predicts(context.name) is None or not context.step.evaluate:
        return None
    examples = datasets.validation_by(context.name)[:count]
    pictures: dict[str, Picture] = {}
    with contextlib.suppress(DataError):  # the data set has no raw images
        pictures = pictures_of(datasets.dataset_of(context.name), examples)
    return ShownPredictions(recipe, context, examples, pictures) if examples else None


def _validation_scores(context: StepContext, recipe: Recipe, datasets: Datasets) -> ValidationScores | None:
    """The scores that say which epoch of a step is best; None if the validation loss does."""
    if context.step.training.metric_for_best_model is None:
        return None
    main = context.accelerator.is_main_process
    data, device = [datasets.dataset_of(context.name)], context.accelerator.device
    judging = recipe.judging(context.name) if main else {}
    metrics = {name: score.build_metric(name, config, data, device) for name, config in judging.items()}
    return ValidationScores(recipe, context, datasets.validation_by(context.name), metrics)


def score_step(
    context: StepContext, recipe: Recipe, datasets: Datasets, metrics: Mapping[str, Metric], folder: RunFolder
) -> Mapping[str, float | None]:
    """Score the texts or predictions of a step, for its row of the table. Returns the scores by column."""
    name, place, progress, test = context.name, context.folder, context.progress, datasets.scored_by(context.name)
    predicts = recipe.predicts(name)
    assert predicts is not None
    judging = {metric_name: metrics[metric_name] for metric_name in recipe.judging(name)}
    for decoding in decodings.folders(folder, name):  # before the step's scores.json, which marks the step as done
        score_again(decoding, decodings.label(name, decoding.name), test, judging, progress)
    if predicts[1] == "text":
        answers: Sequence[Generation] | Sequence[Prediction] = [texts[0] for texts in generations.read(place)]
    else:
        answers = predictions.read(place)
    file = place / ("generations.jsonl" if predicts[1] == "text" else predictions.FILE)
    scores = score.score_predictions(name, answers, test, judging, file, progress)
    score.write_scores(place, scores)
    progress.say(report.samples(answers, test, _choose_renderer(recipe, name, progress), recipe.inputs.values()))
    return scores.values


def _choose_renderer(recipe: Recipe, step: str, progress: Progress) -> report.StepRenderer:
    """The renderer of a step's predictions. If two renderers fit, print the error and show JSON; the run continues."""
    try:
        return report.step_renderer(recipe, step)
    except PluginError as error:
        progress.say(str(error))
        return report.StepRenderer()
