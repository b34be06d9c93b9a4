"""What modules of commands share, also those of plugins: arguments, options, silenced libraries, how to resume."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from .configs import CommandConfig
from .decoding import MOST_TEXTS
from .errors import PluginError

Decorator = Callable[[Any], Any]

recipe_argument = click.argument("recipe", type=click.Path(path_type=Path))
run_argument = click.argument("run", type=click.Path(path_type=Path))
model_argument = click.argument("where")  # a run, an export or hf:user/name
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="RECIPE",
    help="For an export, which has no data: the recipe whose data to use, with its default profile.",
)
profile_option = click.option("--profile", help="The profile of the recipe to apply.")


def settings_option(metavar: str, purpose: str) -> Decorator:
    """The option --set, which may be repeated, for settings of this form."""
    return click.option("--set", "sets", multiple=True, metavar=metavar, help=f"{purpose} May be repeated.")


set_option = settings_option("A.B=VALUE", "Override one setting; VALUE as in TOML.")
steps_option = click.option("--step", "steps", multiple=True, metavar="NAME", help="Only this step. May be repeated.")

LEARNING = "mmgen.learning"  # the logger of notes of parts; only commands that train show them
GOES_ON = "mmgen.goes_on"  # the key of a click context under which `goes_on` keeps its hint


def together(*decorators: Decorator) -> Decorator:
    """Combine several arguments and options into one decorator, in the order of the help."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


query_arguments = together(  # of the commands that query a finished run
    run_argument,
    click.argument("sources", nargs=-1, type=click.Path(path_type=Path)),
    click.option(
        "--input",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="The value of one input: a text, the path of a picture, or a key of the feature store. Repeat the option "
        "for one input to query about several pictures together.",
    ),
)
jsonl_option = click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the answers to this file, as JSONL."
)


shard_option = click.option(
    "--shard",
    metavar="I/N",
    help="Only the I-th of N shards, which together are the whole.",
)


set_extractor = settings_option("KEY=VALUE", "Set one key of the extractor; VALUE as in TOML.")
store_options = together(  # of the commands that fill a feature store
    click.argument("source"),  # a path, or the URL of an object store
    click.argument("store", type=click.Path(path_type=Path)),
    click.option("--type", "kind", required=True, help="The extractor; `mmgen plugins` lists all."),
    set_extractor,
    click.option("--float32", is_flag=True, help="Store features as float32; the default is float16."),
)
caption_option = click.option("--caption", help="Shorthand for --input caption=TEXT.")
writing_options = together(  # of the commands that write texts with a finished run
    query_arguments,
    caption_option,
    click.option(
        "--n", type=int, help=f"Number of different texts per query, 1 to {MOST_TEXTS}; by default as [decoding] says."
    ),
    settings_option(
        "A.B=VALUE",
        "Override a key of decoding (decoding.num_beams=4), or the extractor of an input "
        "(inputs.image.extractor.type=roi).",
    ),
    click.option("--step", help="The step whose weights to use; by default the best one that reads the given inputs."),
    click.option(
        "--seed",
        type=click.IntRange(0),
        help="Of a decoding that samples: the same seed gives a query the same texts; by default drawn, and said.",
    ),
)
training_options = together(  # of the commands that run a recipe
    recipe_argument,
    profile_option,
    set_option,
    click.option(
        "--step",
        "steps",
        multiple=True,
        help="Run only this step and the steps from which it starts. May be repeated.",
    ),
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


def build_command(config: CommandConfig) -> click.Command:
    """The command of a config. Raises PluginError if `build` returns anything else."""
    command: Any = config.build()
    if not isinstance(command, click.Command):
        raise PluginError(f"build() of {type(config).__name__} returned {command!r}; it must return a click.Command")
    return command


@contextlib.contextmanager
def goes_on(how: str) -> Iterator[None]:
    """Decorate a command that can resume: the message of a stopped command ends with `how`, "run the same command again
    to ..."."""
    context = click.get_current_context()
    if context.params.get("fresh"):  # the same command would delete what there is to resume
        how = how.replace("again", "without --fresh")
    context.meta[GOES_ON] = how
    yield


def quiet() -> None:
    """Silence the progress bars and hints of libraries; they would break the progress bars of mmgen."""
    import logging

    from transformers.utils import logging as hf

    hf.set_verbosity_error()
    hf.disable_progress_bar()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it announces every retry
