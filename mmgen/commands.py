"""What modules of commands share, also those of plugins: arguments, options, how to resume."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Any], Any]

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
recipe_argument = click.argument("recipe", type=PATH)
run_argument = click.argument("run", type=PATH)
model_argument = click.argument("where")  # a run, an export or hf:user/name
profile_option = click.option("--profile", help="The profile of the recipe to apply.")


def repeated(option: str, name: str, metavar: str, purpose: str) -> Decorator:
    """An option that may be repeated; `name`: the parameter that has all its values."""
    return click.option(option, name, multiple=True, metavar=metavar, help=f"{purpose} May be repeated.")


set_option = repeated("--set", "sets", "A.B=VALUE", "Override one setting; VALUE as in TOML.")
steps_option = repeated("--step", "steps", "NAME", "Only this step.")
shard_option = click.option("--shard", metavar="I/N", help="Only the I-th of N shards, which together are the whole.")
yes_option = click.option("--yes", is_flag=True, help="Accept licences and fetch published files without asking.")
GOES_ON = "mmgen.goes_on"  # the key of a click context under which `goes_on` keeps its hint


def together(*decorators: Decorator) -> Decorator:
    """Combine several arguments and options into one decorator, in the order of the help."""

    return lambda command: functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), command)


training_options = together(  # of the commands that run a recipe
    recipe_argument,
    profile_option,
    set_option,
    repeated("--step", "steps", "NAME", "Run only this step and the steps from which it starts."),
    click.option("--seed", type=int, help="Shorthand for --set seed=N."),
    click.option(
        "--seeds",
        type=click.IntRange(1),
        default=1,
        help="Number of runs, with consecutive seeds; the table then shows mean and spread.",
    ),
    click.option("--fresh", is_flag=True, help="Delete the contents of the run folder and start over."),
    click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        help="Number of CPU threads; by default OMP_NUM_THREADS, or else one for a small encoder and all cores for a "
        "larger one.",
    ),
)


@contextlib.contextmanager
def goes_on(how: str) -> Iterator[None]:
    """Decorate a command that can resume: the message of a stopped command ends with `how`, "run the same command again
    to ..."."""
    context = click.get_current_context()
    if context.params.get("fresh"):  # the same command would delete what there is to resume
        how = how.replace("again", "without --fresh")
    context.meta[GOES_ON] = how
    yield
