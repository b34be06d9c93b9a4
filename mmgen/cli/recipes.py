"""Commands about recipes: run, show, check, init."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..commands import (
    PATH,
    goes_on,
    profile_option,
    recipe_argument,
    repeated,
    set_option,
    training_options,
    yes_option,
)
from ..errors import MmgenError
from ..progress import Bars, tell


@click.command()
@training_options
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    help="Number of steps that may train at the same time, each in its own process and on its own GPU if there are "
    "GPUs; by default the recipe's value. The weights do not depend on this option.",
)
@repeated(
    "--track",
    "trackers",
    "NAME",
    "Shorthand for --set callbacks.NAME.type=NAME: tensorboard, wandb, trackio, mlflow, or another callback.",
)
@yes_option
@goes_on("run the same command again to resume from the last checkpoint")
def run(
    sets: tuple[str, ...], seed: int | None, seeds: int, trackers: tuple[str, ...], yes: bool, **options: Any
) -> None:
    """Train every step of RECIPE, write its texts and score them. A stopped run resumes where it stopped.

    If published files are all that is missing, it lists them, asks, and fetches them."""
    sets += tuple(f"callbacks.{name}.type={json.dumps(name)}" for name in trackers)
    sets += () if seed is None else (f"seed={seed}",)
    recipe, layers = load_recipe(options.pop("recipe"), options.pop("profile"), sets, plugins=True)
    recipe.check_steps(only := options.pop("steps"))
    from ..runs.prepare import to_fetch
    from ..runs.run import run_seeds
    from ..training.threads import AUTO
    from .downloads import ask_and_fetch

    requests, networks = to_fetch(recipe, recipe.ordered(only), layers)
    if requests or networks:
        ask_and_fetch(requests, yes, networks=networks)

    threads = options.pop("threads") or AUTO
    run_seeds(recipe, seeds, Bars(), only=only, threads=threads, layers=layers, **options)


@click.command()
@recipe_argument
@profile_option
@set_option
def show(**options: Any) -> None:
    """Print a recipe with merged layers and the origin of each value.

    RECIPE is its file."""
    from ..recipe.show import toml

    recipe, layers = load_recipe(**options)
    tell(toml(recipe.identity(), layers))


@click.command()
@click.argument("recipes", nargs=-1, required=True, type=PATH)
@set_option
def check(recipes: tuple[Path, ...], sets: tuple[str, ...]) -> None:
    """Check RECIPES, with all of their profiles, without running anything."""
    from ..recipe.layers import profiles
    from ..registry import forgotten_files

    problems, notes, count = dict[str, None](), dict[str, None](), 0
    for recipe in recipes:
        profiles_of: dict[str, list[str]] = {}  # problem -> the profiles that have it
        try:
            names = profiles(recipe)
        except MmgenError as error:  # no such file, say; the other recipes are checked
            problems[str(error)] = None
            continue
        count += len(names)
        for name in names:
            with forgotten_files():  # another recipe may name another file
                for problem in _problems(recipe, name, sets, notes):
                    profiles_of.setdefault(problem, []).append(name or "none")
        for problem, having in profiles_of.items():
            problems[problem + f" (profile {', '.join(having)})" * (len(having) < len(names))] = None
    for note in notes:
        tell(note, err=True)
    if problems:
        raise MmgenError("\n".join(problems))
    tell(f"{count} configuration{'s' * (count > 1)} in {len(recipes)} recipe{'s' * (len(recipes) > 1)}: no errors")


def _problems(recipe: Path, profile: str | None, sets: tuple[str, ...], notes: dict[str, None]) -> list[str]:
    """What is wrong in a recipe with a profile. Adds notes on callbacks that cannot work here."""
    from ..recipe.weight_files import weight_errors

    try:
        loaded, layers = load_recipe(recipe, profile, sets, plugins=True)
    except MmgenError as error:
        return str(error).split("\n")
    for name, callback in loaded.callbacks.items():
        if problem := callback.problem():
            notes[f"{layers.opening(('callbacks', name))}{problem}; a run goes on without this callback"] = None
    return weight_errors(loaded, loaded.steps, layers)


@click.command()
@click.argument("folder", type=PATH, default=Path("recipes"))
def init(folder: Path) -> None:
    """Copy mmgen's example recipes into FOLDER (default: ./recipes)."""
    from importlib.resources import files

    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(files("mmgen").joinpath("recipes").iterdir(), key=str):
        target = folder / source.name
        if target.exists():
            tell(f"{target}: already exists; skipped")
        else:
            target.write_bytes(source.read_bytes())
            tell(target)


def load_recipe(recipe: Path, profile: str | None, sets: tuple[str, ...], plugins: bool = False):
    """The checked recipe that a command names, and where every value came from. `plugins`: see `mmgen.recipe.load`."""
    from ..recipe.load import load
    from ..registry import installed

    return load(recipe, installed(), profile, sets, plugins)
