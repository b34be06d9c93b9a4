"""The run of a recipe, from start to report: all steps, tables and page; the page of a finished run again."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

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
from ..scoring.table import ScoreTable
from ..storage import scored_examples
from ..storage.model_files import build_model, keep_parts
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
from .prepare import build_metrics, fill_stores, with_inputs_of
from .start_from_weights import check_starts
from .step import score_step, train_step

log = logging.getLogger("mmgen")


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
    began, layers, processes = time.monotonic(), layers or Layered(), distributed.start()
    main = processes.is_main_process
    jobs = jobs if isinstance(jobs, Jobs) else Jobs.of(jobs, recipe, only, processes)
    use_threads(threads)
    progress = progress if progress and main else Progress()
    folder = RunFolder.of(recipe)
    with distributed.peer_failures(processes), folder.locked() if main else contextlib.nullcontext():
        profile = f", profile {recipe.profile}" if recipe.profile else ""
        progress.say(f"{recipe.name}{profile}, seed {recipe.seed} -> {folder.path}")
        for remark in layers.remarks if main else ():
            log.warning(remark)
        with with_missing_parts(recipe, recipe.ordered(only), layers):
            datasets = Datasets(recipe)
            if main:
                folder.claim(recipe, datasets, fresh)
        processes.wait_for_everyone()
        outdated, rewritten = folder.outdated(recipe), folder.outdated_steps(recipe)
        todo = [name for name in recipe.ordered(only) if name in rewritten or not folder.done(recipe, name)]
        if todo:
            if missing := missing_parts(recipe, recipe.ordered(only), layers, folder):
                raise DataError("\n".join(missing))
            with _with_place(layers):
                ready, model, metrics = _prepare(recipe, only, todo, datasets, folder, processes, progress)
            progress.say(choose_threads(threads, model, jobs.count))
            if main:
                folder.note_environment(ready)  # with the number of threads
                check_starts(recipe, todo, model, folder, progress, layers)
        processes.wait_for_everyone()  # all processes have checked what is outdated, and no error can follow
        if outdated and main and (message := folder.retire(recipe)):
            progress.say(message)
        processes.wait_for_everyone()
        with Callbacks(recipe.callbacks if todo and main else {}, progress.say) as events:
            if todo:
                table, profile = recipe.model_dump(mode="json"), recipe.profile or "default"
                info = RunInfo(recipe.name, profile, recipe.seed, folder.path, table, tuple(todo))
                events.send("on_run_begin", info)
                initial = {name: tensor.clone() for name, tensor in state(model).items()}
                with contextlib.closing(jobs.train(todo, ready, folder, only, progress.say, events)) as steps:
                    for name in steps:
                        place, step = folder.step(name), ready.steps[name]
                        context = StepContext(name, step, recipe.seed, place, processes, progress, events)
                        with folder.timed(name) if main else contextlib.nullcontext():
                            train_step(context, ready, model, initial, datasets, folder)
                            scores = score_step(context, ready, datasets, metrics) if main and step.evaluate else {}
                        events.send("on_step_end", name, scores)
                        processes.wait_for_everyone()
            if main:
                events.send("on_run_end", show(recipe, folder, datasets, processes.device, progress))
    done = f"done in {(time.monotonic() - began) / 60:.1f} minutes" if todo else "nothing to do: all steps are done"
    whose = f"seed {recipe.seed}: " * (len(RunFolder.found_in(folder.path.parent)) > 1)  # below their table
    progress.say(f"{whose}{done}; all files are in {folder.path}")
    return folder


def run_seeds(recipe: Recipe, count: int, progress: Progress, **settings: Any) -> None:
    """Run a recipe with consecutive seeds. `settings`: see `run`. The page of the first seed then shows all seeds."""
    for seed in range(recipe.seed, recipe.seed + count):
        folder = run(recipe.model_copy(update={"seed": seed}), progress=progress, **settings)
    if count > 1 and distributed.start().is_main_process:
        beside = folder.path.parent
        if (page := _page(RunFolder.found_in(beside)[0]))[3]:
            report.try_page(*page, progress)
        progress.say(f"seeds {recipe.seed} to {seed}: done; all files are in {beside}")


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
    processes: Processes,
    progress: Progress,
) -> tuple[Recipe, Model, Mapping[str, Metric]]:
    """Extract features and build the model: inputs that none of the steps reads are left out, and need no features. The
    first process checks the data of the steps to do, builds the metrics, and saves what loading the run needs besides
    the steps' files."""
    counts = ", ".join(f"{split} {len(datasets.main.split(split))}" for split in datasets.main.splits())
    progress.say(f"data: {recipe.data.type} ({counts})")
    main, metrics = processes.is_main_process, dict[str, Metric]()
    if main:
        recipe = compare_extractors(recipe, inputs_of(recipe, recipe.ordered(only)), datasets)
    extracted = fill_stores(with_inputs_of(recipe, only), datasets, folder, processes, progress)
    recipe = recipe.model_copy(update={"inputs": {**recipe.inputs, **extracted.inputs}})
    model = build_model(extracted, datasets)
    if main:
        check_data(recipe, todo, datasets, model, progress)
        metrics = build_metrics(recipe, datasets, folder, processes.device)
        keep_parts(model, folder, datasets.vocabularies())
        scored_examples.keep(recipe, datasets, folder.path)
    processes.wait_for_everyone()
    return recipe, model, metrics


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
        progress.say("\n" * bool(number) + whose + str(table))
        if seed_table:
            progress.say(f"\n{seed_table}")
    return [str(table) for table, _ in tables]


def report_on(path: Path, progress: Progress, shown: int = report.SHOWN_EXAMPLES) -> Path:
    """Write `report.html` of a run, which may still be running; of the first seed if `path` has several. Raises
    RunError if no step is finished."""
    folder = next(iter(RunFolder.found_in(path)), RunFolder(path))
    return report.write_page(*_page(folder), progress, shown)


def _page(folder: RunFolder) -> tuple[Recipe, RunFolder, ScoredOn, list[ScoreTable], Callable[[str], Model]]:
    """What the page of a run shows: its tables, over all seeds if there are several, and how to load its models."""
    recipe = folder.recipe(installed())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    datasets = scored_examples.ScoredExamples(recipe, folder.path)
    tables = [report.average_seeds(table, folder) or table for table in report.gather_tables(recipe, folder, datasets)]
    return recipe, folder, datasets, tables, lambda step: load_run(folder.path, step).model.to(device)
