"""One step of a run: train it, write its texts or predictions, score them; what it shows and validates. Resumes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from torch import Tensor

from .. import report
from ..data.datasets import Datasets, pictures_of
from ..errors import DataError, PluginError
from ..evaluation import score
from ..evaluation.answers import answers_file, read_answers, shown_examples, validation_scores, write_answers
from ..model import Model
from ..parts import Metric, Picture, ShownExample
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.run_folder import RunFolder
from ..storage.step_weights import load_step
from ..storage.weights import load_state
from ..training import train
from ..training.context import StepContext
from .prepare import init_objectives
from .start_from_weights import load_start


def train_step(
    context: StepContext,
    recipe: Recipe,
    model: Model,
    initial: Mapping[str, Tensor],
    datasets: Datasets,
    folder: RunFolder,
) -> None:
    """Train a step, and write the texts or predictions of its test examples, as far as it is unfinished."""
    name, trained = context.name, folder.trained(recipe, context.name)
    if not trained:
        _train(context, recipe, model, initial, datasets, folder)
    if not context.step.evaluate or folder.finished(name, answers_file(recipe, name)):
        return
    if trained:
        load_step(model, recipe, folder, name, initial)
    write_answers(model, context, recipe, datasets.scored_by(name))


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
        loaded = load_start(recipe, name, model, folder)
    init_objectives(recipe, name, model, loaded)
    watched = replace(context, predict=_shown_predictions(context, recipe, datasets))
    train.train(model, watched, [*datasets.sources(name).values()], _validation_scores(context, recipe, datasets))


def _shown_predictions(
    context: StepContext, recipe: Recipe, datasets: Datasets
) -> Callable[[Model], list[ShownExample]] | None:
    """The validation examples that callbacks show after every epoch; None if none asks, or the step predicts
    nothing."""
    count = max((callback.num_examples for callback in recipe.callbacks.values()), default=0)
    if not count or recipe.predicts(context.name) is None or not context.step.evaluate:
        return None
    examples = datasets.validation_by(context.name)[:count]
    pictures: dict[str, Picture] = {}
    with contextlib.suppress(DataError):  # the data set has no raw images
        pictures = pictures_of(datasets.dataset_of(context.name), examples)
    return partial(shown_examples, recipe, context, examples, pictures) if examples else None


def _validation_scores(
    context: StepContext, recipe: Recipe, datasets: Datasets
) -> Callable[[Model], Mapping[str, float | None]] | None:
    """The scores that say which epoch of a step is best; None if the validation loss does."""
    if context.step.training.metric_for_best_model is None:
        return None
    accelerator, steps = context.accelerator, [context.name] if context.accelerator.is_main_process else []
    metrics = score.build_metrics(recipe, steps, datasets, accelerator.device)
    return partial(validation_scores, recipe, context, datasets.validation_by(context.name), metrics)


def score_step(
    context: StepContext, recipe: Recipe, datasets: Datasets, metrics: Mapping[str, Metric]
) -> Mapping[str, float | None]:
    """Score the texts or predictions of a step, for its row of the table. Returns the scores by column."""
    name, place, progress, test = context.name, context.folder, context.progress, datasets.scored_by(context.name)
    judging = {metric_name: metrics[metric_name] for metric_name in recipe.judging(name)}
    answers = read_answers(recipe, name, place)
    scores = score.score_predictions(name, answers, test, judging, place / answers_file(recipe, name), progress)
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
