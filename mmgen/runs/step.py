"""The steps of a run: trains each from its start, writes its texts or predictions, scores them. Resumes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import report
from ..data.datasets import Datasets, pictures_of
from ..data.seeds import resolve
from ..errors import DataError, PluginError
from ..evaluation import score
from ..evaluation.answers import answers_file, read_answers, split_answers, write_answers
from ..examples import Example
from ..model import Model
from ..parts import Metric, Picture, ShownExample
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.run_folder import RunFolder
from ..storage.step_weights import load_step
from ..storage.weights import load_state, read_tensors, save_weights, state
from ..training import train
from ..training.callbacks import Events
from ..training.context import StepContext
from ..training.distributed import Processes
from .start_from_weights import load_start


@dataclass
class Steps:
    """Trains and scores the steps of a run, with one model.

    recipe   the run's, with the files of its features
    initial  the model's weights before any step
    """

    recipe: Recipe
    folder: RunFolder
    datasets: Datasets
    model: Model
    processes: Processes
    progress: Progress
    events: Events

    def __post_init__(self) -> None:
        self.initial = {name: tensor.clone() for name, tensor in state(self.model).items()}

    def train(self, name: str) -> None:
        """Train a step, and write the texts or predictions of its test examples, as far as it is unfinished."""
        recipe, folder, step = self.recipe, self.folder, self.recipe.steps[name]
        place = folder.step(name)
        context = StepContext(name, step, recipe.seed, place, self.processes, self.progress, self.events)
        if trained := folder.trained(recipe, name):
            self._complete(name)
        else:
            self._train(context)
        if step.evaluate and not folder.finished(name, answers_file(recipe, name)):
            if trained:
                load_step(self.model, recipe, folder, name, self.initial)
            write_answers(self.model, context, recipe, self.datasets.scored_by(name))

    def _train(self, context: StepContext) -> None:
        """Train a step from the weights that it starts from. Afterwards, the model has its weights."""
        name, before, loaded = context.name, context.step.before, set[str]()
        if before is not None:
            load_step(self.model, self.recipe, self.folder, before, self.initial)
        else:
            load_state(self.model, self.initial, "the initial model")
            if not self.folder.begun(name):  # a checkpoint has all weights
                loaded = load_start(self.recipe, name, self.model, self.progress)
        init_objectives(self.recipe, name, self.model, loaded)
        watched = replace(context, predict=self._shown_predictions(context))
        sources = [*self.datasets.sources(name).values()]
        train.train(self.model, watched, sources, self._validation_scores(context))

    def _complete(self, name: str) -> None:
        """Add to a trained step's weights those of inputs that the model which trained it did not have."""
        path = self.folder.step(name) / "weights.safetensors"
        missing = path.exists() and self.initial.keys() - read_tensors(path)[0].keys()
        if missing and self.processes.is_main_process:
            load_step(self.model, self.recipe, self.folder, name, self.initial)
            save_weights(self.model, path, step=name)

    def _shown_predictions(self, context: StepContext) -> Callable[[Model], list[ShownExample]] | None:
        """Predicts the validation examples that callbacks show after every epoch; None if none asks, or the step
        predicts nothing."""
        name, recipe = context.name, self.recipe
        count = max((callback.num_examples for callback in recipe.callbacks.values()), default=0)
        examples = self.datasets.validation_by(name)[:count]
        if not examples or recipe.predicts(name) is None or not context.step.evaluate:
            return None
        pictures: dict[str, Picture] = {}
        with contextlib.suppress(DataError):  # the data set has no raw images
            pictures = pictures_of(self.datasets.dataset_of(name), examples)

        def shown(_: Model) -> list[ShownExample]:
            answers = self._best_answers(context, examples)  # other processes have none
            return [_show(example, answer, pictures) for example, answer in zip(examples, answers, strict=False)]

        return shown

    def _best_answers(self, context: StepContext, examples: Sequence[Example]) -> list[Any]:
        """The best text or the prediction, as for test examples, in the first process. All processes call it."""
        silent = replace(context, progress=Progress())  # training has the progress bar
        answers = split_answers(self.model, silent, self.recipe, examples)
        return [answer[0] if isinstance(answer, list) else answer for answer in answers]

    def _validation_scores(self, context: StepContext) -> Callable[[Model], Mapping[str, float | None]] | None:
        """Scores the validation examples, to say which epoch of a step is best; None if the validation loss does. The
        scores are in the first process."""
        name, main = context.name, self.processes.is_main_process
        if context.step.training.metric_for_best_model is None:
            return None
        examples = self.datasets.validation_by(name)
        metrics = score.build_metrics(self.recipe, [name] * main, self.datasets, self.processes.device)

        def scores(_: Model) -> Mapping[str, float | None]:
            answers, log = self._best_answers(context, examples), context.folder / "log.jsonl"
            return score.score_predictions(name, answers, examples, metrics, log, Progress()).values if main else {}

        return scores

    def score(self, name: str, metrics: Mapping[str, Metric]) -> Mapping[str, float | None]:
        """Score the texts or predictions of a step, for its row of the table. Returns the scores by column."""
        recipe, progress, test = self.recipe, self.progress, self.datasets.scored_by(name)
        place = self.folder.step(name)
        judging, file = {key: metrics[key] for key in recipe.judging(name)}, place / answers_file(recipe, name)
        answers = read_answers(recipe, name, place)
        scores = score.score_predictions(name, answers, test, judging, file, progress)
        score.write_scores(place, scores)
        renderer = report.StepRenderer()  # shows JSON
        try:
            renderer = report.step_renderer(recipe, name)
        except PluginError as error:  # two renderers fit
            progress.say(str(error))
        progress.say(report.samples(answers, test, renderer, recipe.inputs.values()))
        return scores.values


def _show(example: Example, answer: Any, pictures: Mapping[str, Picture]) -> ShownExample:
    resolved = resolve(example)
    keys = [key for field in resolved.inputs for key in resolved.shown(field) if isinstance(key, str)]
    return ShownExample(resolved, answer, tuple(pictures[key] for key in keys if key in pictures))


def init_objectives(recipe: Recipe, step: str, model: Model, published_names: Collection[str] = ()) -> None:
    """Initialise the heads of a step that no earlier step has trained, from the step's initial weights.
    `published_names`: parameters with published weights; a head with such parameters is not initialised."""
    *before, last = recipe.chain(step)
    trained = {name for earlier in before for name in recipe.steps[earlier].objectives}
    for name in recipe.steps[last].objectives:
        if name not in trained and not any(key.startswith(f"objectives.{name}.") for key in published_names):
            train.init_objective(model, name, recipe.seed)
