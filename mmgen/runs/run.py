"""Recipe in, results out: the list of what happens in a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from .. import report
from ..data.datasets import Datasets
from ..evaluation import generate, predict, score
from ..model import Model
from ..parts import Metric
from ..progress import Progress
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage import decodings, generations, kept_examples, kept_start, predictions
from ..storage.run_folder import RunFolder
from ..storage.weights import load_state, state
from ..training import distributed, train
from ..training.context import StepContext
from ..training.threads import choose_threads, use_threads
from .gaps import find_gaps
from .load import load_run
from .prepare import begin, build_metrics, introduce, keep_parts, model_of_steps, title
from .rewrite import score_again
from .start import keep_starts, load_start
from .step_weights import load_step
from .unread_text import warn_of_unread_text


def run(
    recipe: Recipe,
    *,
    only: str | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
    threads: int | str | None = None,
    place: Callable[[str], str] = "steps.{}.start: ".format,
) -> RunFolder:
    """Every step that is not done yet: learn, write, score; then the table. `only`: this step and what it starts
    from. `threads`: see `training.threads.choose_threads`. `place`: how an error about a step's start begins."""
    accelerator = distributed.start()
    use_threads(threads)
    progress = progress if progress and accelerator.is_main_process else Progress()
    folder = RunFolder.of(recipe)
    began = time.monotonic()
    with (
        distributed.peer_failures(accelerator),
        folder.locked() if accelerator.is_main_process else contextlib.nullcontext(),
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
            model, recipe = model_of_steps(recipe, recipe.ordered(only), datasets, folder, accelerator, progress)
            warn_of_unread_text(recipe, model, datasets, todo, progress)
            find_gaps(recipe, model, datasets, todo)
            progress.say(choose_threads(threads, model))
            metrics = build_metrics(recipe, datasets) if accelerator.is_main_process else {}
            initial = {name: tensor.clone() for name, tensor in state(model).items()}
            if accelerator.is_main_process:
                folder.note_environment(recipe)
                keep_parts(model, folder, datasets.labels())
                kept_examples.keep(recipe, datasets, folder.path)
                keep_starts(recipe, todo, model, folder, progress, place)
        accelerator.wait_for_everyone()  # all have seen what is outdated, and nothing stands in the way any more
        if outdated and accelerator.is_main_process and (said := folder.retire(recipe)):
            progress.say(said)
        accelerator.wait_for_everyone()
        for name in todo:
            with folder.timed(name) if accelerator.is_main_process else contextlib.nullcontext():
                context = StepContext(name, recipe.steps[name], recipe.seed, folder.step(name), accelerator, progress)
                run_step(context, recipe, model, initial, datasets, metrics, folder)
        if accelerator.is_main_process:
            show(
                recipe,
                folder,
                datasets,
                lambda step: load_run(folder.path, step).model.to(accelerator.device),
                progress,
            )
    done = f"done in {(time.monotonic() - began) / 60:.1f} minutes" if todo else "nothing to do: all steps are done"
    progress.say(f"{done}; everything is in {folder.path}")
    return folder


def _left(recipe: Recipe, steps: Sequence[str], folder: RunFolder) -> list[str]:
    """Those of some steps with which something is left to do."""
    anew = folder.outdated(recipe)
    return [name for name in steps if not folder.done(recipe, name) or (anew and recipe.steps[name].evaluate)]


def show(
    recipe: Recipe, folder: RunFolder, datasets: Datasets, load: Callable[[str], Model], progress: Progress
) -> None:
    """The tables, of this run and over its seeds, and the page."""
    tables = report.gather_all(recipe, folder, datasets)
    if not tables:
        progress.say("no row of the table is finished yet, so there is no table and no page")
        return
    together = [report.over_seeds(own, folder) for own in tables]
    report.write_tables(recipe, folder, tables, together)
    shown = [over or own for own, over in zip(tables, together, strict=True)]
    report.try_page(recipe, folder, datasets, shown, load, progress)
    for number, (own, over) in enumerate(zip(tables, together, strict=True)):
        progress.say("\n" * bool(number) + report.markdown(own))
        if over:
            progress.say(f"\n{report.markdown(over)}")


def run_step(
    context: StepContext,
    recipe: Recipe,
    model: Model,
    initial: dict[str, Tensor],
    datasets: Datasets,
    metrics: Mapping[str, Metric],
    folder: RunFolder,
) -> None:
    """One row of the table, from wherever it was left."""
    name, step, place, progress = context.name, context.step, context.folder, context.progress
    if folder.finished(name, "weights.safetensors"):
        load_step(model, recipe, folder, name, initial)
    else:
        given: set[str] = set()
        if step.before is not None:
            load_step(model, recipe, folder, step.before, initial)
        else:
            load_state(model, initial, "the model as it was built")
            given = load_start(model, folder, name) if step.weights is not None else given
        begin(recipe, name, model, given)
        train.train(model, context, [*datasets.sources(name).values()])
        if context.accelerator.is_main_process:
            (place / kept_start.WEIGHTS).unlink(missing_ok=True)
    if not step.evaluate:
        return
    predicts, test = recipe.predicts(name), datasets.scored_by(name)
    assert predicts is not None  # or `mmgen check` refuses the step
    objective, kind = predicts
    if not folder.finished(name, "generations.jsonl" if kind == "text" else predictions.FILE):
        if kind == "text":
            generate.generate_split(model, context, test, recipe.decoding)
        else:
            predict.predict_split(model, context, test, objective)
    if context.accelerator.is_main_process:
        judging = {called: metrics[called] for called in recipe.judging(name)}
        for each in decodings.folders(folder, name):  # before the step's own: that file says that the step is done
            score_again(each, decodings.label(name, each.name), test, judging, progress)
        if kind == "text":
            texts = generations.read(place)
            scores, said = score.score(name, texts, test, judging, place, progress), report.samples(texts, test)
        else:
            made = predictions.read(place)
            scores = score.score_predictions(name, made, test, judging, place / predictions.FILE, progress)
            said = report.answered(made, test)
        score.write_scores(place, scores)
        progress.say(said)
    context.accelerator.wait_for_everyone()


def report_on(path: Path, progress: Progress, shown: int = report.SHOWN) -> Path:
    """`report.html` of a run that is finished, or goes on; of the first of its seeds where `path` holds several. Raises
    RunError where there is nothing to show."""
    folder = next(iter(RunFolder.found_in(path)), RunFolder(path))
    recipe = folder.recipe(installed())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    datasets = kept_examples.ScoredExamples(recipe, folder.path)
    tables = [report.over_seeds(own, folder) or own for own in report.gather_all(recipe, folder, datasets)]
    return report.write_page(
        recipe, folder, datasets, tables, lambda step: load_run(folder.path, step).model.to(device), progress, shown
    )
