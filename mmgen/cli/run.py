"""The command `mmgen run`: train every step of a recipe, write its texts and score them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import click

from ..commands import LEARNING, goes_on, quiet, training_options
from .recipes import load_recipe


@click.command()
@training_options
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    help="Number of steps that may train at the same time, each in its own process and on its own GPU if there are "
    "GPUs; by default the recipe's value. The weights do not depend on this option.",
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
    steps: tuple[str, ...],
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
    loaded_recipe, layers = load_recipe(recipe, profile, (*sets, *shorthands))
    loaded_recipe.check_steps(steps)
    quiet()
    logging.getLogger(LEARNING).setLevel(logging.INFO)
    from ..progress import Bars
    from ..runs.run import run_seeds
    from ..training.threads import AUTO

    settings = {"only": steps, "fresh": fresh, "threads": threads or AUTO, "jobs": jobs, "layers": layers}
    run_seeds(loaded_recipe, seeds, Bars(), **settings)
