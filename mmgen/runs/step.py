"""The steps of a run: trains each from its start, writes its texts or predictions, scores them. Resumes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .. import report
from ..data.datasets import Datasets
from ..errors import PluginError
from ..evaluation import score
from ..evaluation.answers import answers_file, read_answers, write_answers
from ..model import Model
from ..parts import Metric
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
            self._init(name)
            train.train(self.model, context, [*self.datasets.sources(name).values()])
        if step.evaluate and not folder.finished(name, answers_file(recipe, name)):
            if trained:
                load_step(self.model, recipe, folder, name, self.initial)
            write_answers(self.model, context, recipe, self.datasets.scored_by(name))

    def _init(self, name: str) -> None:
        """Give the model the weights that a step starts from."""
        before, loaded = self.recipe.steps[name].before, set[str]()
        if before is not None:
            load_step(self.model, self.recipe, self.folder, before, self.initial)
        else:
            load_state(self.model, self.initial, "the initial model")
            if not self.folder.begun(name):  # a checkpoint has all weights
                loaded = load_start(self.recipe, name, self.model, self.progress)
        init_objectives(self.recipe, name, self.model, loaded)

    def _complete(self, name: str) -> None:
        """Add to a trained step's weights those of inputs that the model which trained it did not have."""
        path = self.folder.weights(name)
        missing = path.exists() and self.initial.keys() - read_tensors(path)[0].keys()
        if missing and self.processes.is_main_process:
            load_step(self.model, self.recipe, self.folder, name, self.initial)
            save_weights(self.model, path, step=name)

    def score(self, name: str, metrics: Mapping[str, Metric]) -> Mapping[str, float | None]:
        """Score the texts or predictions of a step, for its row of the table. Returns the scores by column."""
        recipe, place = self.recipe, self.folder.step(name)
        scores = score.score_step(recipe, name, self.folder, self.datasets, metrics, self.progress)
        score.write_scores(place, scores)
        renderer = report.StepRenderer()  # shows JSON
        try:
            renderer = report.step_renderer(recipe, name)
        except PluginError as error:  # two renderers fit
            self.progress.say(str(error))
        answers, examples = read_answers(recipe, name, place), self.datasets.scored_by(name)
        self.progress.say(report.samples(answers, examples, renderer, recipe.inputs.values()))
        return scores.values


def init_objectives(recipe: Recipe, step: str, model: Model, published_names: Collection[str] = ()) -> None:
    """Initialise the heads of a step that no earlier step has trained, from the step's initial weights.
    `published_names`: parameters with published weights; a head with such parameters is not initialised."""
    *before, last = recipe.chain(step)
    trained = {name for earlier in before for name in recipe.steps[earlier].objectives}
    for name in recipe.steps[last].objectives:
        if name not in trained and not any(key.startswith(f"objectives.{name}.") for key in published_names):
            train.init_objective(model, name, recipe.seed)
