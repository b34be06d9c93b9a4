"""Commands about recipes and runs: run, show, check, init, generate."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..commands import (
    LEARNING,
    goes_on,
    jsonl_option,
    profile_option,
    quiet,
    recipe_argument,
    set_option,
    shard_option,
    training_options,
    writing_options,
)
from ..errors import MmgenError
from ..progress import tell
from .answer_output import answer_all, choose_output


@click.command()
@training_options
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    help="Number of steps that may train at the same time, each in its own process; by default the recipe's value. The "
    "weights do not depend on this option.",
)
@click.option(
    "--track",
    "trackers",
    multiple=True,
    metavar="NAME",
    help="Shorthand for --set callbacks.NAME.type=NAME: tensorboard, wandb, trackio, mlflow, or another callback. May "
    "be repeated.",
)
@goes_on("run the same command again to resume from the last checkpoint")
def run(
    recipe: Path,
    profile: str | None,
    sets: tuple[str, ...],
    step: str | None,
    seed: int | None,
    seeds: int,
    fresh: bool,
    threads: int | None,
    jobs: int | None,
    trackers: tuple[str, ...],
) -> None:
    """Train every step of RECIPE, write its texts and score them. A stopped run resumes where it stopped."""
    shorthands = [f"callbacks.{name}.type={json.dumps(name)}" for name in trackers]
    shorthands += [f"seed={seed}"] if seed is not None else []
    loaded_recipe, layers = load(recipe, profile, (*sets, *shorthands))
    loaded_recipe.check_steps([step] if step is not None else [])
    quiet()
    logging.getLogger(LEARNING).setLevel(logging.INFO)
    from ..progress import Bars
    from ..runs.run import run as run_recipe
    from ..training.threads import AUTO

    for run_seed in range(loaded_recipe.seed, loaded_recipe.seed + seeds):
        run_recipe(
            loaded_recipe.model_copy(update={"seed": run_seed}),
            only=step,
            fresh=fresh,
            progress=Bars(),
            threads=threads or AUTO,
            jobs=jobs,
            layers=layers,
        )


@click.command()
@recipe_argument
@profile_option
@set_option
def show(recipe: Path, profile: str | None, sets: tuple[str, ...]) -> None:
    """Print RECIPE with all layers merged, and the origin of each value."""
    from ..recipe.show import toml

    loaded_recipe, layers = load(recipe, profile, sets)
    tell(toml(loaded_recipe.identity(), layers), wrap=False)


@click.command()
@click.argument("recipes", nargs=-1, required=True, type=click.Path(path_type=Path))
@set_option
def check(recipes: tuple[Path, ...], sets: tuple[str, ...]) -> None:
    """Check RECIPES, with all of their profiles, without running anything."""
    from ..recipe.layers import profiles
    from ..recipe.weight_files import weight_file_errors

    problems, notes = list[str](), list[str]()
    count = 0
    for recipe in recipes:
        try:
            profile_names: list[str | None] = [*profiles(recipe)] or [None]
        except MmgenError as error:  # no such file, say; the other recipes are checked
            problems.append(str(error))
            continue
        for profile in profile_names:
            count += 1
            try:
                resolved, layers = load(recipe, profile, sets)
                problems += weight_file_errors(resolved, layers)
                notes += [
                    f"{layers.opening(('callbacks', name))}{problem}; a run goes on without this callback"
                    for name, callback in resolved.callbacks.items()
                    if (problem := callback.problem())
                ]
            except MmgenError as error:
                problems.append(str(error))
    for note in dict.fromkeys(notes):
        tell(note, err=True)
    if problems:
        raise MmgenError("\n".join(dict.fromkeys(problems)))
    tell(f"{count} configuration{'s' * (count > 1)} in {len(recipes)} recipe{'s' * (len(recipes) > 1)}: no errors")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("recipes"))
def init(folder: Path) -> None:
    """Copy mmgen's example recipes into FOLDER (default: ./recipes)."""
    from importlib.resources import files

    folder.mkdir(parents=True, exist_ok=True)
    recipe_files = (file for file in files("mmgen").joinpath("recipes").iterdir() if file.name.endswith(".toml"))
    for source in sorted(recipe_files, key=lambda file: file.name):
        target = folder / source.name
        if target.exists():
            tell(f"{target}: already exists; skipped")
        else:
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            tell(target)


@click.command()
@writing_options
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="TEXT",
    help="Shorthand for --input prompt=TEXT: what a text is to fit, such as 'answer: red'. May be repeated; each "
    "prompt has its own texts.",
)
@click.option(
    "--avoid",
    "avoided",
    multiple=True,
    metavar="TEXT",
    help="Shorthand for --input avoid=TEXT: a text that the new texts are to differ from. May be repeated.",
)
@jsonl_option
@shard_option
def generate(
    run: Path,
    sources: tuple[Path, ...],
    pairs: tuple[str, ...],
    caption: str | None,
    prompts: tuple[str, ...],
    avoided: tuple[str, ...],
    n: int | None,
    sets: tuple[str, ...],
    step: str | None,
    out: Path | None,
    shard: str | None,
) -> None:
    """Generate texts with the model in the run folder RUN. SOURCES are images, folders of images, or JSONL files whose
    fields are inputs. --input also gives inputs."""
    if not sources and not pairs and not caption:
        raise MmgenError("no input; give a picture, a folder, a JSONL file, --input NAME=VALUE, or --caption")
    output = choose_output(_print, out, shard)
    quiet()
    from ..evaluation.collapse import collapsed
    from ..inference.load import check_query, load_for, search_options
    from ..inference.query import named_values, read_sources, refuse_overwriting
    from ..progress import Bars

    shorthands = [*([f"caption={caption}"] if caption else []), *(f"prompt={prompt}" for prompt in prompts)]
    shorthands += [f"avoid={text}" for text in avoided]
    values = named_values([*shorthands, *pairs])
    queries = read_sources(sources, values, check_query(run, step), Bars())
    refuse_overwriting(out, sources, queries)

    def begin():
        predictor = load_for(run, queries, step, sets)
        return predictor, search_options(predictor, n, sets)

    answers = answer_all(queries, begin, ("writing", "written"), output)
    if remark := collapsed([answer.texts[0].text for answer in answers if answer.texts]):
        tell(remark, err=True)


def _print(line: Mapping[str, Any], kind: str) -> None:
    tell(line["id"])
    if "error" in line:
        tell(f"    skipped: {line['error']}", err=True)
    for text in line.get("texts", []):
        kind = f" ({text['score_kind']})" if "score_kind" in text else ""
        prompt = f"  ({text['prompt']})" if "prompt" in text else ""
        tell(f"    {text['score']:6.2f}{kind}  {text['text']}{prompt}")


def load(recipe: Path, profile: str | None, sets: tuple[str, ...]):
    from ..recipe.load import load
    from ..registry import installed

    return load(recipe, installed(), profile, sets)
