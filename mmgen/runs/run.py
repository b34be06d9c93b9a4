"""The run of a recipe, from start to report: all steps, tables and page; the page of a finished run again."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from ..training.callbacks import Callbacks, Events
from ..training.context import StepContext
from ..training.distributed import Processes
from ..training.threads import choose_threads, use_threads
from .data_check import check_data
from .missing import missing_parts, with_missing_parts
from .named_extractors import compare_extractors
from .prepare import build_metrics, introduce, model_of_steps, title
from .side_by_side import Elsewhere, Jobs, begin_early, complete_weights, preload, processes, trained_steps
from .start_from_weights import check_starts
from .step import score_step, train_step

log = logging.getLogger("mmgen")


@dataclass(frozen=True)
class _Prepared:
    """The results of preparing a run, before its first step. `initial`: the initial weights of the model."""

    recipe: Recipe
    model: Model
    metrics: Mapping[str, Metric]
    initial: Mapping[str, Tensor]
    datasets: Datasets
    events: Events


def run(
    recipe: Recipe,
    *,
    only: tuple[str, ...] = (),
    fresh: bool = False,
    progress: Progress | None = None,
    threads: int | str | None = None,
    jobs: int | Elsewhere | None = None,
    layers: Layered | None = None,
) -> RunFolder:
    """Train, write and score every unfinished step, then write the table and the page.

    only     run only these steps and the steps from which they start; default: all steps
    fresh    delete the contents of the run folder first
    threads  see `training.threads.choose_threads`
    jobs     number of steps that train at the same time (`side_by_side`), or workers elsewhere; default: the recipe's
             value
    layers   the places of the recipe's keys, for errors"""
    layers = layers or Layered()
    accelerator = distributed.start()
    if isinstance(jobs, Elsewhere):
        side_by_side, open_workers = Jobs(jobs.count, only), jobs.open
    else:
        side_by_side, open_workers = Jobs.of(jobs, recipe, only, accelerator), processes
    use_threads(threads)
    progress = progress if progress and accelerator.is_main_process else Progress()
    folder = RunFolder.of(recipe)
    if open_workers is processes:
        preload(recipe, folder, side_by_side)
    start_time = time.monotonic()
    with (
        distributed.peer_failures(accelerator),
        folder.locked() if accelerator.is_main_process else contextlib.nullcontext(),
        open_workers() as running,
    ):
        progress.say(f"{title(recipe)} -> {folder.path}")
        for remark in layers.remarks if accelerator.is_main_process else ():
            log.warning(remark)
        with with_missing_parts(recipe, recipe.ordered(only), layers):
            datasets = Datasets(recipe)
            if accelerator.is_main_process:
                folder.claim(recipe, datasets, fresh)
        accelerator.wait_for_everyone()
        outdated = folder.outdated(recipe)
        todo = _unfinished_steps(recipe, recipe.ordered(only), folder)
        if todo:
            if missing := missing_parts(recipe, recipe.ordered(only), layers, folder):
                raise DataError("\n".join(missing))
            introduce(recipe, datasets.main, progress)
            if not outdated:
                begin_early(todo, recipe, folder, side_by_side, threads, running)
            with _with_place(layers):
                model, recipe = _check_and_build_model(recipe, only, todo, datasets, folder, accelerator, progress)
            progress.say(choose_threads(threads, model, side_by_side.count))
            metrics = build_metrics(recipe, datasets, folder, accelerator.device) if accelerator.is_main_process else {}
            initial = {name: tensor.clone() for name, tensor in state(model).items()}
            if accelerator.is_main_process:
                _save_model_files(recipe, model, datasets, folder)
                check_starts(recipe, todo, model, folder, progress, layers)
        accelerator.wait_for_everyone()  # all processes have checked what is outdated, and no error can follow
        if outdated and accelerator.is_main_process and (message := folder.retire(recipe)):
            progress.say(message)
        accelerator.wait_for_everyone()
        with Callbacks(recipe.callbacks if todo and accelerator.is_main_process else {}, progress.say) as events:
            if todo:
                events.send("on_run_begin", _run_info(recipe, folder, todo))
                running.events = events
                prepared = _Prepared(recipe, model, metrics, initial, datasets, events)
                early = partial(complete_weights, model=model, recipe=recipe, folder=folder, initial=initial)
                steps = trained_steps(todo, recipe, folder, side_by_side, running, progress, early)
                _finish_steps(steps, prepared, folder, accelerator, progress)
            if accelerator.is_main_process:
                events.send("on_run_end", show(recipe, folder, datasets, accelerator.device, progress))
    done = (
        f"done in {(time.monotonic() - start_time) / 60:.1f} minutes" if todo else "nothing to do: all steps are done"
    )
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


def _check_and_build_model(
    recipe: Recipe,
    only: tuple[str, ...],
    todo: Sequence[str],
    datasets: Datasets,
    folder: RunFolder,
    accelerator: Processes,
    progress: Progress,
) -> tuple[Model, Recipe]:
    """See `model_of_steps`. Also checks the data of the steps to do, in the first process."""
    if accelerator.is_main_process:
        recipe = compare_extractors(recipe, inputs_of(recipe, recipe.ordered(only)), datasets)
    model, recipe = model_of_steps(recipe, recipe.ordered(only), datasets, folder, accelerator, progress)
    if accelerator.is_main_process:
        check_data(recipe, todo, datasets, model, progress)
    accelerator.wait_for_everyone()
    return model, recipe


def _finish_steps(
    steps: Iterable[str], prepared: _Prepared, folder: RunFolder, accelerator: Processes, progress: Progress
) -> None:
    """Train, write and score each step, as far as it is unfinished."""
    recipe, datasets = prepared.recipe, prepared.datasets
    for name in steps:
        step = recipe.steps[name]
        context = StepContext(name, step, recipe.seed, folder.step(name), accelerator, progress, prepared.events)
        scores: Mapping[str, float | None] = {}
        with folder.timed(name) if accelerator.is_main_process else contextlib.nullcontext():
            train_step(context, recipe, prepared.model, prepared.initial, datasets, folder)
            if accelerator.is_main_process and step.evaluate:
                scores = score_step(context, recipe, datasets, prepared.metrics, folder)
        prepared.events.send("on_step_end", name, scores)
        accelerator.wait_for_everyone()


def _run_info(recipe: Recipe, folder: RunFolder, todo: Sequence[str]) -> RunInfo:
    table = recipe.model_dump(mode="json")
    return RunInfo(recipe.name, recipe.profile or "default", recipe.seed, folder.path, table, tuple(todo))


def _save_model_files(recipe: Recipe, model: Model, datasets: Datasets, folder: RunFolder) -> None:
    """Save the files that loading the run needs besides the steps' files, and the environment."""
    folder.note_environment(recipe)
    keep_parts(model, folder, datasets.vocabularies())
    scored_examples.keep(recipe, datasets, folder.path)


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
