"""Rewrite: a finished run's steps write again with another decoding; nothing is learnt, and the first texts stay."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import report
from ..data.datasets import Datasets
from ..decoding import Decoding
from ..errors import RecipeError, RunError
from ..evaluation import generate, score
from ..files import clear_partials
from ..inference.load import load_run
from ..parts import Metric
from ..progress import Progress
from ..recipe.layers import setting_table
from ..recipe.load import with_settings
from ..recipe.tables import Recipe
from ..registry import did_you_mean, installed
from ..storage import decodings, generations
from ..storage.run_folder import RunFolder
from ..storage.step_weights import load_step
from ..tensors import Example
from ..training import distributed
from ..training.context import StepContext


def rewrite(
    path: str | Path,
    sets: Sequence[str],
    *,
    steps: Sequence[str] = (),
    name: str | None = None,
    progress: Progress | None = None,
) -> RunFolder:
    """Texts and scores with changed decoding, in each step's `decodings/NAME/`, and the tables with a row for each.

    sets   such as "decoding.num_beams=4", laid over the run's decoding
    steps  by default all that are evaluated and have weights
    name   of the folder; by default it says the options
    Goes on where it was stopped. Raises RunError, RecipeError, DataError."""
    folder, progress = RunFolder(Path(path)), progress or Progress()
    recipe = folder.recipe(installed())
    decoding = changed_decoding(recipe, sets)
    if name is None:
        name = decodings.name_of(decoding)
    decodings.check_name(name)
    chosen = _steps(folder, recipe, steps)
    accelerator = distributed.start()
    progress = progress if accelerator.is_main_process else Progress()
    with (
        distributed.peer_failures(accelerator),
        folder.locked() if accelerator.is_main_process else contextlib.nullcontext(),
    ):
        datasets = same_data(recipe, folder)
        contexts = [
            StepContext(
                step, recipe.steps[step], recipe.seed, folder.step(step) / "decodings" / name, accelerator, progress
            )
            for step in chosen
        ]
        if accelerator.is_main_process:
            clear_partials(folder.path)
            for context in contexts:
                decodings.claim(context.folder, decoding)
        accelerator.wait_for_everyone()
        unwritten = [each for each in contexts if not generations.is_complete(each.folder)]
        _write(recipe, folder, unwritten, datasets, decoding)
        if accelerator.is_main_process:
            metrics = {called: config.build() for called, config in recipe.metrics.items()}
            for context in contexts:
                judging = {called: metrics[called] for called in recipe.judging(context.name)}
                examples, label = datasets.scored_by(context.name), decodings.label(context.name, name)
                score_again(context.folder, label, examples, judging, progress)
            _show(recipe, folder, datasets, progress)
            progress.say(f"everything is in {', '.join(str(context.folder) for context in contexts)}")
        accelerator.wait_for_everyone()
    return folder


def changed_decoding(recipe: Recipe, sets: Sequence[str]) -> Decoding:
    """The recipe's decoding with settings laid over it. Raises RecipeError."""
    if not sets:
        raise RecipeError("nothing is changed: give --set decoding.KEY=VALUE, such as --set decoding.num_beams=4")
    for setting in sets:
        if any(table != "decoding" for table in setting_table(setting)[0]):
            raise RecipeError(f"--set {setting}: a finished run writes again with other decoding only (decoding.*)")
    decoding = with_settings(recipe, sets, installed()).decoding
    if decoding == recipe.decoding:
        raise RecipeError(f"--set {' '.join(sets)}: the run has been written so already; its texts are in its steps")
    return decoding


def same_data(recipe: Recipe, folder: RunFolder) -> Datasets:
    """The data sets of a finished run. Raises RunError where their examples are others than those it has seen."""
    datasets = Datasets(recipe)
    if folder.fingerprint() != datasets.fingerprint():
        raise RunError(f"{folder.path}: the data set's examples have changed since the run; give those back")
    return datasets


def score_again(
    place: Path, called: str, examples: Sequence[Example], metrics: Mapping[str, Metric], progress: Progress
) -> None:
    """`scores.json` beside the texts of a decoding, where there are texts and no scores."""
    if generations.is_complete(place) and not (place / "scores.json").exists():
        scores = score.score(called, generations.read(place), examples, metrics, place, progress)
        score.write_scores(place, scores)


def _steps(folder: RunFolder, recipe: Recipe, wanted: Sequence[str]) -> list[str]:
    """The steps that write again, in the recipe's order. Raises RunError."""
    for name in wanted:
        if name not in recipe.steps:
            raise RunError(
                f"--step: there is no step '{name}'{did_you_mean(name, recipe.steps)}; there are: "
                f"{', '.join(recipe.steps)}"
            )
        if not recipe.steps[name].evaluate:
            raise RunError(f"--step {name}: it is not evaluated (evaluate = false), so it has no row and no texts")
        if not folder.finished(name):
            raise RunError(f"{folder.path}: the step '{name}' is not finished yet; go on with `mmgen run`")
    write = [name for name in recipe.steps if recipe.makes_texts(name)]
    if others := [name for name in wanted if name not in write]:
        raise RunError(f"--step {others[0]}: it predicts no texts, so no decoding concerns it")
    chosen = [name for name in write if folder.finished(name) and (not wanted or name in wanted)]
    if not chosen:
        raise RunError(f"{folder.path}: no row of the table is finished yet; go on with `mmgen run`")
    return chosen


def _write(
    recipe: Recipe, folder: RunFolder, contexts: Sequence[StepContext], datasets: Datasets, decoding: Decoding
) -> None:
    """`generations.jsonl` of each, by one model that takes on one step's weights after another."""
    for place, context in enumerate(contexts):
        if not place:
            model = load_run(folder.path, context.name).model
        else:
            load_step(model, recipe, folder, context.name)
        generate.generate_split(model, context, datasets.scored_by(context.name), decoding)


def _show(recipe: Recipe, folder: RunFolder, datasets: Datasets, progress: Progress) -> None:
    tables = report.gather_tables(recipe, folder, datasets)
    together = [report.average_seeds(own, folder) for own in tables]
    report.write_tables(recipe, folder, tables, together)
    for found in filter(None, (*tables, *together)):
        progress.say(report.markdown(found))
