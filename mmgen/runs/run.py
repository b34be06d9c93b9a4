"""Recipe in, results out: the list of what happens in a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

from .. import report
from ..data.datasets import Datasets
from ..data.unread_text import warn_of_unread_text
from ..errors import DataError
from ..inference.load import load_run
from ..model import Model
from ..parts import Metric
from ..progress import Progress
from ..recipe.layers import Layered
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage import kept_examples
from ..storage.model_files import keep_parts
from ..storage.run_folder import RunFolder
from ..storage.weights import state
from ..training import distributed
from ..training.context import StepContext
from ..training.threads import choose_threads, use_threads
from .gaps import find_gaps
from .prepare import build_metrics, introduce, model_of_steps, title
from .side_by_side import Jobs, begin, complete, learnt, preload, processes
from .start import keep_starts
from .step import learn_step, score_step


@dataclass(frozen=True)
class _Made:
    """What a run has made before its first step. `initial`: the model's weights as it was built."""

    recipe: Recipe
    model: Model
    metrics: Mapping[str, Metric]
    initial: Mapping[str, Tensor]
    datasets: Datasets


def run(
    recipe: Recipe,
    *,
    only: str | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
    threads: int | str | None = None,
    jobs: int | None = None,
    layers: Layered | None = None,
) -> RunFolder:
    """Every step that is not done yet: learn, write, score; then the table. `only`: this step and what it starts
    from. `threads`: see `training.threads.choose_threads`. `jobs`: how many steps may be learnt at a time
    (`side_by_side`), by default as many as the recipe says. `layers`: where the recipe was written, for errors."""
    layers = layers or Layered()
    accelerator = distributed.start()
    side_by_side = Jobs.of(jobs, recipe, only, accelerator)
    use_threads(threads)
    progress = progress if progress and accelerator.is_main_process else Progress()
    folder = RunFolder.of(recipe)
    preload(recipe, folder, side_by_side)
    began = time.monotonic()
    with (
        distributed.peer_failures(accelerator),
        folder.locked() if accelerator.is_main_process else contextlib.nullcontext(),
        processes() as running,
    ):
        progress.say(f"{title(recipe)} -> {folder.path}")
        datasets = Datasets(recipe)
        if accelerator.is_main_process:
            folder.claim(recipe, datasets, fresh)
        accelerator.wait_for_everyone()
        outdated = folder.outdated(recipe)
        todo = _left(recipe, recipe.ordered(only), folder)
        if todo:
            introduce(recipe, datasets.main, progress)
            if not outdated:
                begin(todo, recipe, folder, side_by_side, threads, running)
            with _placed(layers):
                model, recipe = _model(recipe, only, todo, datasets, folder, accelerator, progress)
            progress.say(choose_threads(threads, model, side_by_side.most))
            metrics = build_metrics(recipe, datasets) if accelerator.is_main_process else {}
            initial = {name: tensor.clone() for name, tensor in state(model).items()}
            if accelerator.is_main_process:
                _keep(recipe, model, datasets, folder)
                keep_starts(recipe, todo, model, folder, progress, layers)
        accelerator.wait_for_everyone()  # all have seen what is outdated, and nothing stands in the way any more
        if outdated and accelerator.is_main_process and (said := folder.retire(recipe)):
            progress.say(said)
        accelerator.wait_for_everyone()
        if todo:
            made = _Made(recipe, model, metrics, initial, datasets)
            early = partial(complete, model=model, recipe=recipe, folder=folder, initial=initial)
            steps = learnt(todo, recipe, folder, side_by_side, running, progress, early)
            _finish_steps(steps, made, folder, accelerator, progress)
        if accelerator.is_main_process:
            show(recipe, folder, datasets, accelerator.device, progress)
    done = f"done in {(time.monotonic() - began) / 60:.1f} minutes" if todo else "nothing to do: all steps are done"
    progress.say(f"{done}; everything is in {folder.path}")
    return folder


@contextlib.contextmanager
def _placed(layers: Layered) -> Iterator[None]:
    """Errors that know which key of the recipe they are about begin with its place."""
    try:
        yield
    except DataError as error:
        if not error.about:
            raise
        raise DataError(f"{layers.opening(error.about)}{error}") from None


def _model(
    recipe: Recipe,
    only: str | None,
    todo: Sequence[str],
    datasets: Datasets,
    folder: RunFolder,
    accelerator: Accelerator,
    progress: Progress,
) -> tuple[Model, Recipe]:
    """See `model_of_steps`; what is wrong with the data of the steps that are left is said too."""
    model, recipe = model_of_steps(recipe, recipe.ordered(only), datasets, folder, accelerator, progress)
    warn_of_unread_text(recipe, model, datasets, todo, progress)
    find_gaps(recipe, model, datasets, todo)
    return model, recipe


def _finish_steps(
    steps: Iterable[str], made: _Made, folder: RunFolder, accelerator: Accelerator, progress: Progress
) -> None:
    """Each step learns, writes and is scored, as far as it is not done."""
    recipe, datasets = made.recipe, made.datasets
    for name in steps:
        context = StepContext(name, recipe.steps[name], recipe.seed, folder.step(name), accelerator, progress)
        with folder.timed(name) if accelerator.is_main_process else contextlib.nullcontext():
            learn_step(context, recipe, made.model, made.initial, datasets, folder)
            if accelerator.is_main_process and recipe.steps[name].evaluate:
                score_step(context, recipe, datasets, made.metrics, folder)
        accelerator.wait_for_everyone()


def _keep(recipe: Recipe, model: Model, datasets: Datasets, folder: RunFolder) -> None:
    """What loading the run needs beside the steps' files, and what it computes with."""
    folder.note_environment(recipe)
    keep_parts(model, folder, datasets.labels())
    kept_examples.keep(recipe, datasets, folder.path)


def _left(recipe: Recipe, steps: Sequence[str], folder: RunFolder) -> list[str]:
    """Those of some steps with which something is left to do."""
    anew = folder.outdated(recipe)
    return [name for name in steps if not folder.done(recipe, name) or (anew and recipe.steps[name].evaluate)]


def show(recipe: Recipe, folder: RunFolder, datasets: Datasets, device: torch.device, progress: Progress) -> None:
    """The tables, of this run and over its seeds, and the page."""

    def load(step: str) -> Model:
        return load_run(folder.path, step).model.to(device)

    tables = report.gather_tables(recipe, folder, datasets)
    if not tables:
        progress.say("no row of the table is finished yet, so there is no table and no page")
        return
    together = [report.average_seeds(own, folder) for own in tables]
    report.write_tables(recipe, folder, tables, together)
    shown = [over or own for own, over in zip(tables, together, strict=True)]
    report.try_page(recipe, folder, datasets, shown, load, progress)
    for number, (own, over) in enumerate(zip(tables, together, strict=True)):
        progress.say("\n" * bool(number) + report.markdown(own))
        if over:
            progress.say(f"\n{report.markdown(over)}")


def report_on(path: Path, progress: Progress, shown: int = report.SHOWN_EXAMPLES) -> Path:
    """`report.html` of a run that is finished, or goes on; of the first of its seeds where `path` holds several. Raises
    RunError where there is nothing to show."""
    folder = next(iter(RunFolder.found_in(path)), RunFolder(path))
    recipe = folder.recipe(installed())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    datasets = kept_examples.ScoredExamples(recipe, folder.path)
    tables = [report.average_seeds(own, folder) or own for own in report.gather_tables(recipe, folder, datasets)]
    return report.write_page(
        recipe, folder, datasets, tables, lambda step: load_run(folder.path, step).model.to(device), progress, shown
    )
