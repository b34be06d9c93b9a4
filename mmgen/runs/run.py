"""The run of a recipe, from start to report: all steps, tables and page; the page of a finished run again."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .. import report
from ..data.datasets import Datasets
from ..errors import DataError, MmgenError
from ..evaluation import score
from ..evaluation.score import reference_scores
from ..inference.load import load as load_model
from ..model import Model
from ..parts import Metric, RunInfo
from ..progress import Progress
from ..recipe.layers import Layered
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage import scored_examples
from ..storage.model_files import build_model, inputs_of, keep_parts
from ..storage.run_folder import RunFolder
from ..training import distributed
from ..training.context import Callbacks
from ..training.distributed import Processes
from ..training.threads import AUTO, choose_threads, use_threads
from .child import Settings, Steps
from .data_check import check_data
from .jobs import Children, Jobs
from .prepare import (
    feature_files,
    fill_stores,
    missing_parts,
    with_features,
    with_inputs_of,
    with_missing_parts,
)

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
    folder, steps = RunFolder.of(recipe), recipe.ordered(only)
    with distributed.peer_failures(processes), folder.locked() if main else contextlib.nullcontext():
        profile = f", profile {recipe.profile}" if recipe.profile else ""
        progress.say(f"{recipe.name}{profile}, seed {recipe.seed} -> {folder.path}")
        with with_missing_parts(recipe, steps, layers):
            datasets = Datasets(recipe)
            if main:
                folder.claim(recipe, datasets, fresh)
        processes.wait_for_everyone()
        rewritten = [*folder.outdated(recipe)]
        todo = [name for name in steps if name in rewritten or not folder.done(recipe, name)]
        if todo:
            if missing := missing_parts(recipe, steps, layers, folder):
                raise DataError("\n".join(missing))
            try:
                settings = Settings(only, threads, jobs.count)
                _Run(recipe, folder, datasets, processes, progress, jobs, settings).do(todo)
            except MmgenError as error:
                if not error.about:
                    raise
                raise type(error)(f"{layers.opening(error.about)}{error}") from None
        elif main:
            folder.retire(recipe)  # metrics that score nothing
            show(recipe, folder, datasets, progress)
    done = f"done in {(time.monotonic() - began) / 60:.1f} minutes" if todo else "nothing to do: all steps are done"
    progress.say(f"{done}; all files are in {folder.path}")
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
        recipe, folder, datasets, progress = self.recipe, self.folder, self.datasets, self.progress
        only, processes, main = self.settings.only, self.processes, self.processes.is_main_process
        counts = ", ".join(f"{split} {len(datasets.main.split(split))}" for split in datasets.main.splits())
        progress.say(f"data: {recipe.data.type} ({counts})")
        files = feature_files(recipe, only, folder)
        ready = with_features(recipe, files)
        with contextlib.closing(Children(self.jobs, todo, ready, folder, self.settings, progress.say)) as children:
            self._extract(todo, files, children)
            model = build_model(with_inputs_of(ready, only), datasets)
            progress.say(choose_threads(self.settings.threads, model, self.jobs.count))
            metrics = self._check(todo, ready, model) if main else {}
            processes.wait_for_everyone()  # all have checked what is outdated, and no error can follow
            if main and (message := folder.retire(recipe)):
                progress.say(message)
            processes.wait_for_everyone()
            with Callbacks(recipe.callbacks if main else {}, progress.say) as events:
                table, profile = recipe.model_dump(mode="json"), recipe.profile or "default"
                info = RunInfo(recipe.name, profile, recipe.seed, folder.path, table, tuple(todo))
                events("on_run_begin", info)
                steps = Steps(ready, folder, datasets, model, processes, progress, events)
                children.start()
                if main:  # the table needs these scores, but an error should stop the run early
                    scored = [name for name in todo if recipe.steps[name].evaluate]
                    reference_scores(recipe, scored, datasets, folder.path, metrics)
                processes.wait_for_everyone()
                for name in children.train(events):
                    steps.train(name)
                    scores = steps.score(name, metrics) if main and recipe.steps[name].evaluate else {}
                    events("on_step_end", name, scores)
                    processes.wait_for_everyone()
                if main:
                    events("on_run_end", show(recipe, folder, datasets, progress))

    def _extract(self, todo: Sequence[str], files: Mapping[str, Path], children: Children) -> None:
        """Extract features. Meanwhile, children train steps that read none of them."""
        recipe, threads, begun = self.recipe, torch.get_num_threads(), 0
        absent = {name for name, path in files.items() if not path.exists()}
        if absent and not self.folder.outdated(recipe):
            begun = children.start([name for name in todo if not absent & {*inputs_of(recipe, [name])}])
        if begun and self.settings.threads == AUTO:
            torch.set_num_threads(max(1, threads - begun))
        fill_stores(recipe, files, self.datasets, self.processes, self.progress)
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
    """Run a recipe with consecutive seeds. `settings`: see `run`. The page of the last seed shows all seeds."""
    for seed in range(recipe.seed, recipe.seed + count):
        run(recipe.model_copy(update={"seed": seed}), progress=progress, **settings)


def show(recipe: Recipe, folder: RunFolder, datasets: Datasets, progress: Progress) -> list[str]:
    """Print the tables of this run and over its seeds, and write the page. Returns the tables of this run."""
    tables = report.write_tables(recipe, folder, datasets)
    if not tables:
        progress.say("no table and no page yet, because no step with scores is finished")
        return []
    shown = [seed_table or table for table, seed_table in tables]
    report.try_page(recipe, folder, datasets, shown, lambda step: load_model(folder.path, step).model, progress)
    for table, seed_table in tables:
        progress.say(f"\nseed {recipe.seed}:\n\n{table}\n\n{seed_table}" if seed_table else f"\n{table}")
    return [str(table) for table, _ in tables]


def report_on(path: Path, progress: Progress, shown: int = report.SHOWN_EXAMPLES) -> Path:
    """Write `report.html` of a run, which may still be running; of the first seed if `path` has several. Raises
    RunError if no step is finished."""
    folder = next(iter(RunFolder.found_in(path)), RunFolder(path))
    recipe = folder.recipe(installed())
    datasets = scored_examples.ScoredExamples(recipe, folder.path)
    tables = [average or table for table, average in report.tables_with_seeds(recipe, folder, datasets)]
    return report.write_page(
        recipe, folder, datasets, tables, lambda step: load_model(folder.path, step).model, progress, shown
    )
