"""Write a run's test texts again with another decoding, without training, if its data are the same; and score them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import report
from ..data.datasets import Datasets
from ..decoding import DecodingConfig
from ..errors import RecipeError, RunError
from ..evaluation import generate, score
from ..files import clear_partials
from ..inference.load import load_run
from ..parts import Metric
from ..progress import Progress
from ..recipe.layers import setting_table
from ..recipe.load import with_settings
from ..recipe.tables import Recipe
from ..registry import installed
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
    """Write texts and scores with another decoding into each step's `decodings/NAME/`, and add rows to the tables.

    sets   overrides of the run's decoding, such as "decoding.num_beams=4"
    steps  default: all evaluated steps with weights
    name   name of the folder; default: the options
    A stopped call continues where it stopped. Raises RunError, RecipeError, DataError."""
    folder, progress = RunFolder(Path(path)), progress or Progress()
    recipe = folder.recipe(installed())
    decoding = changed_decoding(recipe, sets)
    if name is None:
        name = decodings.name_of(decoding)
    decodings.check_name(name)
    chosen = _select_steps(folder, recipe, steps)
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
        unwritten = [context for context in contexts if not generations.is_complete(context.folder)]
        _write_generations(recipe, folder, unwritten, datasets, decoding)
        if accelerator.is_main_process:
            data, device = score.datasets_of(recipe, datasets), accelerator.device
            metrics = {key: score.build_metric(key, config, data, device) for key, config in recipe.metrics.items()}
            for context in contexts:
                judging = {metric_name: metrics[metric_name] for metric_name in recipe.judging(context.name)}
                examples, label = datasets.scored_by(context.name), decodings.label(context.name, name)
                score_again(context.folder, label, examples, judging, progress)
            tables = report.write_tables(recipe, folder, datasets)
            for table in [*(table for table, _ in tables), *(seed_table for _, seed_table in tables if seed_table)]:
                progress.say(report.markdown(table))
            progress.say(f"all files are in {', '.join(str(context.folder) for context in contexts)}")
        accelerator.wait_for_everyone()
    return folder


def changed_decoding(recipe: Recipe, sets: Sequence[str]) -> DecodingConfig:
    """The recipe's decoding with overrides. Raises RecipeError."""
    if recipe.generator is None:
        raise RecipeError("the recipe has no generator, so no step writes texts")
    if not sets:
        key, value = next(iter(recipe.generator.decoding()), ("KEY", ""))
        example = "num_beams=4" if key == "num_beams" else f"{key}={json.dumps(value)}"
        raise RecipeError(f"the decoding is unchanged; add --set decoding.KEY=VALUE, such as --set decoding.{example}")
    for setting in sets:
        if any(table != "decoding" for table in setting_table(setting)[0]):
            raise RecipeError(
                f"--set {setting}: the settings of a trained run are fixed; only decoding.* can be overridden"
            )
    decoding = with_settings(recipe, sets, installed()).decoding
    if decoding == recipe.decoding:
        raise RecipeError(
            f"--set {' '.join(sets)}: already generated with these settings; see steps/*/generations.jsonl"
        )
    return decoding


def same_data(recipe: Recipe, folder: RunFolder) -> Datasets:
    """The data sets of a run. Raises RunError if their examples have changed since the run."""
    datasets = Datasets(recipe)
    if folder.fingerprint() != datasets.fingerprint():
        raise RunError(f"{folder.path}: the data set's examples have changed since the run; restore the original data")
    return datasets


def score_again(
    place: Path, label: str, examples: Sequence[Example], metrics: Mapping[str, Metric], progress: Progress
) -> None:
    """Write `scores.json` beside the texts of a decoding, if the texts are complete and not scored."""
    if generations.is_complete(place) and not (place / "scores.json").exists():
        scores = score.score(label, generations.read(place), examples, metrics, place, progress)
        score.write_scores(place, scores)


def _select_steps(folder: RunFolder, recipe: Recipe, names: Sequence[str]) -> list[str]:
    """The steps to generate with, in the recipe's order. Raises RunError, RecipeError."""
    recipe.check_steps(names)
    for name in names:
        if not recipe.steps[name].evaluate:
            raise RunError(f"--step {name}: the step has no texts, because evaluate = false; choose another step")
        if not folder.finished(name):
            raise RunError(f"{folder.path}: step '{name}' is not finished yet; continue with `mmgen run`")
    writing_steps = [name for name in recipe.steps if recipe.makes_texts(name)]
    if without_texts := [name for name in names if name not in writing_steps]:
        raise RunError(f"--step {without_texts[0]}: the step does not write texts, so decoding has no effect")
    chosen = [name for name in writing_steps if folder.finished(name) and (not names or name in names)]
    if not chosen:
        raise RunError(f"{folder.path}: no step is finished yet; continue with `mmgen run`")
    return chosen


def _write_generations(
    recipe: Recipe, folder: RunFolder, contexts: Sequence[StepContext], datasets: Datasets, decoding: DecodingConfig
) -> None:
    """Write `generations.jsonl` for each context, with one model that loads the weights of each step in turn."""
    for place, context in enumerate(contexts):
        if not place:
            model = load_run(folder.path, context.name).model
        else:
            load_step(model, recipe, folder, context.name)
        generate.generate_split(model, context, datasets.scored_by(context.name), decoding)
