"""The run of a recipe, from start to report: all steps, tables and page; the page of a finished run again."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .. import report
from ..data.datasets import Datasets, ScoredOn
from ..errors import DataError, MmgenError
from ..evaluation import score
from ..evaluation.references import reference_scores
from ..inference.load import load as load_model
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
from ..training import distributed
from ..training.callbacks import Callbacks
from ..training.distributed import Processes
from ..training.threads import AUTO, choose_threads, use_threads
from .child import Settings
from .data_check import check_data
from .jobs import Children, Jobs
from .prepare import (
    compare_extractors,
    feature_files,
    fill_stores,
    missing_parts,
    with_features,
    with_inputs_of,
    with_missing_parts,
)
from .step import Steps

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
        rewritten = [*folder.outdated(recipe)]
        todo = [name for name in recipe.ordered(only) if name in rewritten or not folder.done(recipe, name)]
        if todo:
            if missing := missing_parts(recipe, recipe.ordered(only), layers, folder):
                raise DataError("\n".join(missing))
            with _with_place(layers):
                _Run(recipe, folder, datasets, processes, progress, jobs, Settings(only, threads, jobs.count)).do(todo)
        elif main:
            folder.retire(recipe)  # metrics that score nothing
            show(recipe, folder, datasets, progress)
    done = f"done in {(time.monotonic() - began) / 60:.1f} minutes" if todo else "nothing to do: all steps are done"
    whose = f"seed {recipe.seed}: " * (len(RunFolder.found_in(folder.path.parent)) > 1)  # below their table
    progress.say(f"{whose}{done}; all files are in {folder.path}")
    return folder


@dataclass(frozen=True)
class _Run:
    """A run with steps to do, whose folder is claimed."""

    recipe: Recipe
    folder: RunFolder
    datasets: Datasets
    processes: Processes
    progress: Progress
    jobs: Jobs
    settings: Settings

    def do(self, todo: Sequence[str]) -> None:
        """Train and score these steps, and write the tables and the page. Inputs that none of the steps reads are left
        out, and need no features."""
        recipe, datasets, only, progress = self.recipe, self.datasets, self.settings.only, self.progress
        main = self.processes.is_main_process
        counts = ", ".join(f"{split} {len(datasets.main.split(split))}" for split in datasets.main.splits())
        progress.say(f"data: {recipe.data.type} ({counts})")
        ready = recipe
        if main:
            ready = compare_extractors(recipe, inputs_of(recipe, recipe.ordered(only)), datasets)
        files = feature_files(recipe, only, self.folder)
        ready = with_features(ready, files)
        with contextlib.closing(Children(self.jobs, todo, ready, self.folder, self.settings, progress.say)) as children:
            self._extract(todo, files, children)
            model = build_model(with_inputs_of(ready, only), datasets)
            progress.say(choose_threads(self.settings.threads, model, self.jobs.count))
            metrics = self._check(todo, ready, model) if main else {}
            self.processes.wait_for_everyone()  # all have checked what is outdated, and no error can follow
            if main and (message := self.folder.retire(recipe)):
                progress.say(message)
            self.processes.wait_for_everyone()
            with Callbacks(recipe.callbacks if main else {}, progress.say) as events:
                table, profile = recipe.model_dump(mode="json"), recipe.profile or "default"
                info = RunInfo(recipe.name, profile, recipe.seed, self.folder.path, table, tuple(todo))
                events.send("on_run_begin", info)
                steps = Steps(ready, self.folder, datasets, model, self.processes, progress, events)
                children.start()
                if main:  # the table needs these scores, but an error should stop the run early
                    scored = [name for name in todo if recipe.steps[name].evaluate]
                    reference_scores(recipe, scored, datasets, self.folder.path, metrics)
                self.processes.wait_for_everyone()
                for name in children.train(events):
                    steps.train(name)
                    scores = steps.score(name, metrics) if main and recipe.steps[name].evaluate else {}
                    events.send("on_step_end", name, scores)
                    self.processes.wait_for_everyone()
                if main:
                    tables = show(recipe, self.folder, datasets, progress)
                    events.send("on_run_end", tables)

    def _extract(self, todo: Sequence[str], files: Mapping[str, Path], children: Children) -> None:
        """Extract features. Meanwhile, children train steps that read none of them."""
        recipe, threads, begun = self.recipe, torch.get_num_threads(), 0
        absent = {name for name, path in files.items() if not path.exists()}
        if absent and not self.folder.outdated(recipe):
            begun = children.begin([name for name in todo if not absent & {*inputs_of(recipe, [name])}])
        if begun and self.settings.threads == AUTO:
            torch.set_num_threads(max(1, threads - begun))
        fill_stores(recipe, files, self.datasets, self.processes, self.progress)
        if begun:
            torch.set_num_threads(threads)

    def _check(self, todo: Sequence[str], ready: Recipe, model: Model) -> dict[str, Metric]:
        """Check the data of the steps, and save what loading the run needs besides the steps' files. Returns the
        metrics."""
        recipe, folder = self.recipe, self.folder
        check_data(ready, todo, self.datasets, model, self.progress)
        scored = [name for name, step in recipe.steps.items() if step.evaluate]
        metrics = score.build_metrics(recipe, scored, self.datasets, self.processes.device)
        keep_parts(model, folder, self.datasets.vocabularies())
        scored_examples.keep(recipe, self.datasets, folder.path)
        folder.note_environment(ready)
        return metrics


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
    except MmgenError as error:
        if not error.about:
            raise
        raise type(error)(f"{layers.opening(error.about)}{error}") from None


def show(recipe: Recipe, folder: RunFolder, datasets: Datasets, progress: Progress) -> list[str]:
    """Print the tables of this run and over its seeds, and write the page. Returns the tables of this run."""
    tables = report.write_tables(recipe, folder, datasets)
    if not tables:
        progress.say("no table and no page yet, because no step with scores is finished")
        return []
    shown = [seed_table or table for table, seed_table in tables]
    report.try_page(recipe, folder, datasets, shown, partial(_load, folder), progress)
    for number, (table, seed_table) in enumerate(tables):
        whose = f"seed {recipe.seed}:\n\n" * bool(seed_table)
        progress.say("\n" * bool(number) + whose + str(table))
        if seed_table:
            progress.say(f"\n{seed_table}")
    return [str(table) for table, _ in tables]


def _load(folder: RunFolder, step: str) -> Model:
    return load_model(folder.path, step).model


def report_on(path: Path, progress: Progress, shown: int = report.SHOWN_EXAMPLES) -> Path:
    """Write `report.html` of a run, which may still be running; of the first seed if `path` has several. Raises
    RunError if no step is finished."""
    folder = next(iter(RunFolder.found_in(path)), RunFolder(path))
    return report.write_page(*_page(folder), progress, shown)


def _page(folder: RunFolder) -> tuple[Recipe, RunFolder, ScoredOn, list[ScoreTable], Callable[[str], Model]]:
    """What the page of a run shows: its tables, over all seeds if there are several, and how to load its models."""
    recipe = folder.recipe(installed())
    datasets = scored_examples.ScoredExamples(recipe, folder.path)
    tables = [average or table for table, average in report.tables_with_seeds(recipe, folder, datasets)]
    return recipe, folder, datasets, tables, partial(_load, folder)
