"""The run of a recipe, from start to report: all steps, tables and page; the page of a finished run again."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from .. import report
from ..data.datasets import Datasets, ScoredOn
from ..errors import DataError
from ..inference.load import load_run
from ..model import Model
from ..parts import Metric, RunInfo
from ..progress import Progress
from ..recipe.layers import Layered
from ..recipe.tables import Recipe
from ..registry import installed
from ..report.table import Table
from ..storage import scored_examples
from ..storage.model_files import keep_parts
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of
from ..storage.weights import state
from ..training import distributed
from ..training.callbacks import Callbacks
from ..training.context import StepContext
from ..training.distributed import Processes
from ..training.threads import choose_threads, use_threads
from .data_check import check_data
from .jobs import Jobs
from .missing import missing_parts, with_missing_parts
from .named_extractors import compare_extractors
from .prepare import build_metrics, introduce, model_of_steps, title
from .start_from_weights import check_starts
from .step import score_step, train_step

log = logging.getLogger("mmgen")


@dataclass(frozen=True)
class _Prepared:
    """A run before its first step. `recipe`: with the paths of extracted features; `initial`: the initial weights."""

    recipe: Recipe
    model: Model
    initial: Mapping[str, Tensor]
    metrics: Mapping[str, Metric]


def run(
    recipe: Recipe,
    *,
    only: tuple[str, ...] = (),
    fresh: bool = False,
    progress: Progress | None = None,
    threads: int | str | None = None,
    jobs: int | Jobs | None = None,
    layers: Layered | None = None,
) -> RunFolder:
    """Train, write and score every unfinished step, then write the table and the page.

    only     run only these steps and the steps from which they start; default: all steps
    fresh    delete the contents of the run folder first
    threads  see `training.threads.choose_threads`
    jobs     number of steps that train at the same time; default: the recipe's value
    layers   the places of the recipe's keys, for errors"""
    began, layers, accelerator = time.monotonic(), layers or Layered(), distributed.start()
    main = accelerator.is_main_process
    jobs = jobs if isinstance(jobs, Jobs) else Jobs.of(jobs, recipe, only, accelerator)
    use_threads(threads)
    progress = progress if progress and main else Progress()
    folder = RunFolder.of(recipe)
    with distributed.peer_failures(accelerator), folder.locked() if main else contextlib.nullcontext():
        progress.say(f"{title(recipe)} -> {folder.path}")
        for remark in layers.remarks if main else ():
            log.warning(remark)
        with with_missing_parts(recipe, recipe.ordered(only), layers):
            datasets = Datasets(recipe)
            if main:
                folder.claim(recipe, datasets, fresh)
        accelerator.wait_for_everyone()
        outdated, todo = folder.outdated(recipe), _unfinished_steps(recipe, recipe.ordered(only), folder)
        if todo:
            if missing := missing_parts(recipe, recipe.ordered(only), layers, folder):
                raise DataError("\n".join(missing))
            introduce(recipe, datasets.main, progress)
            with _with_place(layers):
                prepared = _prepare(recipe, only, todo, datasets, folder, accelerator, progress)
            progress.say(choose_threads(threads, prepared.model, jobs.count))
            if main:
                check_starts(recipe, todo, prepared.model, folder, progress, layers)
        accelerator.wait_for_everyone()  # all processes have checked what is outdated, and no error can follow
        if outdated and main and (message := folder.retire(recipe)):
            progress.say(message)
        accelerator.wait_for_everyone()
        with Callbacks(recipe.callbacks if todo and main else {}, progress.say) as events:
            if todo:
                events.send("on_run_begin", _run_info(recipe, folder, todo))
                training = jobs.train(todo, prepared.recipe, folder, only, progress.say, events)
                with contextlib.closing(training) as trained:
                    for name in trained:
                        step = prepared.recipe.steps[name]
                        context = StepContext(name, step, recipe.seed, folder.step(name), accelerator, progress, events)
                        _finish_step(context, prepared, datasets, folder)
            if main:
                events.send("on_run_end", show(recipe, folder, datasets, accelerator.device, progress))
    done = f"done in {(time.monotonic() - began) / 60:.1f} minutes" if todo else "nothing to do: all steps are done"
    whose = f"seed {recipe.seed}: " * (len(RunFolder.found_in(folder.path.parent)) > 1)  # below their table
    progress.say(f"{whose}{done}; all files are in {folder.path}")
    return folder


@contextlib.contextmanager
def _with_place(layers: Layered) -> Iterator[None]:
    """Prefix errors about a recipe key with the place of the key."""
    try:
        yield
    except DataError as error:
        if not error.about:
            raise
        raise DataError(f"{layers.opening(error.about)}{error}") from None


def _prepare(
    recipe: Recipe,
    only: tuple[str, ...],
    todo: Sequence[str],
    datasets: Datasets,
    folder: RunFolder,
    accelerator: Processes,
    progress: Progress,
) -> _Prepared:
    """Extract features, build the model and the metrics, and check the data of the steps to do, in the first process;
    then save what loading the run needs besides the steps' files, and the environment."""
    main, steps, metrics = accelerator.is_main_process, recipe.ordered(only), dict[str, Metric]()
    if main:
        recipe = compare_extractors(recipe, inputs_of(recipe, steps), datasets)
    model, recipe = model_of_steps(recipe, steps, datasets, folder, accelerator, progress)
    if main:
        check_data(recipe, todo, datasets, model, progress)
        metrics = build_metrics(recipe, datasets, folder, accelerator.device)
        folder.note_environment(recipe)
        keep_parts(model, folder, datasets.vocabularies())
        scored_examples.keep(recipe, datasets, folder.path)
    accelerator.wait_for_everyone()
    initial = {name: tensor.clone() for name, tensor in state(model).items()}
    return _Prepared(recipe, model, initial, metrics)


def _finish_step(context: StepContext, prepared: _Prepared, datasets: Datasets, folder: RunFolder) -> None:
    """Train, write and score a step, as far as it is unfinished."""
    recipe, main = prepared.recipe, context.accelerator.is_main_process
    scores: Mapping[str, float | None] = {}
    with folder.timed(context.name) if main else contextlib.nullcontext():
        train_step(context, recipe, prepared.model, prepared.initial, datasets, folder)
        if main and context.step.evaluate:
            scores = score_step(context, recipe, datasets, prepared.metrics, folder)
    context.events.send("on_step_end", context.name, scores)
    context.accelerator.wait_for_everyone()


def _run_info(recipe: Recipe, folder: RunFolder, todo: Sequence[str]) -> RunInfo:
    table = recipe.model_dump(mode="json")
    return RunInfo(recipe.name, recipe.profile or "default", recipe.seed, folder.path, table, tuple(todo))


def _unfinished_steps(recipe: Recipe, steps: Sequence[str], folder: RunFolder) -> list[str]:
    """The steps that are not completely done."""
    outdated = folder.outdated_steps(recipe)
    return [name for name in steps if not folder.done(recipe, name) or name in outdated]


def show(recipe: Recipe, folder: RunFolder, datasets: Datasets, device: torch.device, progress: Progress) -> list[str]:
    """Print the tables of this run and over its seeds, and write the page. Returns the tables of this run."""

    def load(step: str) -> Model:
        return load_run(folder.path, step).model.to(device)

    tables = report.write_tables(recipe, folder, datasets)
    if not tables:
        progress.say(
            "no table and no page yet, because no step with scores is finished"
            if any(step.evaluate for step in recipe.steps.values())
            else "no table and no page, because every step has evaluate = false; losses are in steps/STEP/log.jsonl"
        )
        return []
    shown = [seed_table or table for table, seed_table in tables]
    report.try_page(recipe, folder, datasets, shown, load, progress)
    for number, (table, seed_table) in enumerate(tables):
        whose = f"seed {recipe.seed}:\n\n" * bool(seed_table)
        progress.say("\n" * bool(number) + whose + report.markdown(table))
        if seed_table:
            progress.say(f"\n{report.markdown(seed_table)}")
    return [report.markdown(table) for table, _ in tables]


def report_on(path: Path, progress: Progress, shown: int = report.SHOWN_EXAMPLES) -> Path:
    """Write `report.html` of a run, which may still be running; of the first seed if `path` has several. Raises
    RunError if no step is finished."""
    folder = next(iter(RunFolder.found_in(path)), RunFolder(path))
    return report.write_page(*_page(folder), progress, shown)


def refresh_page(path: Path, progress: Progress) -> None:
    """Write the page of the first seed in a folder again, whose tables are over all its seeds now. An error is reported
    in a line."""
    folders = RunFolder.found_in(path)
    if distributed.start().is_main_process and folders and (page := _page(folders[0]))[3]:
        report.try_page(*page, progress)


def _page(folder: RunFolder) -> tuple[Recipe, RunFolder, ScoredOn, list[Table], Callable[[str], Model]]:
    """What the page of a run shows: its tables, over all seeds if there are several, and how to load its models."""
    recipe = folder.recipe(installed())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    datasets = scored_examples.ScoredExamples(recipe, folder.path)
    tables = [report.average_seeds(table, folder) or table for table in report.gather_tables(recipe, folder, datasets)]
    return recipe, folder, datasets, tables, lambda step: load_run(folder.path, step).model.to(device)
