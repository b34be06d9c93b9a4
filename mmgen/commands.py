"""What modules of commands share, the core's and those of plugins: options, quiet libraries, how a command goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

recipe_argument = click.argument("recipe", type=click.Path(path_type=Path))
run_argument = click.argument("run", type=click.Path(path_type=Path))
profile_option = click.option("--profile", help="Which of the recipe's profiles to lay over it.")
set_option = click.option(
    "--set", "sets", multiple=True, metavar="A.B=VALUE", help="Change one setting; VALUE as in TOML. May be repeated."
)

steps_option = click.option("--step", "steps", multiple=True, metavar="NAME", help="Only this step. May be repeated.")

Decorator = Callable[[Any], Any]

LEARNING = "mmgen.learning"  # the logger of parts' notes that only commands show which learn
GOES_ON = "mmgen.goes_on"  # where a click context keeps what `goes_on` says


def together(*decorators: Decorator) -> Decorator:
    """Several arguments and options as one decorator, in the order in which help lists them."""

    def decorate(command: Any) -> Any:
        for each in reversed(decorators):
            command = each(command)
        return command

    return decorate


asked_arguments = together(  # of commands that ask a finished run
    run_argument,
    click.argument("sources", nargs=-1, type=click.Path(path_type=Path)),
    click.option(
        "--input",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="The value of an input, by its name: a text, a picture's path, a key of its features. Given again for the "
        "same input, several pictures are shown together.",
    ),
)
jsonl_option = click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write JSONL to this file.")


@contextlib.contextmanager
def goes_on(how: str) -> Iterator[None]:
    """Decorates a command that need not begin anew: whoever stops it reads how it goes on."""
    click.get_current_context().meta[GOES_ON] = how
    yield


def quiet() -> None:
    """Silence the bars and hints of libraries, which would break ours."""
    import logging

    from transformers.utils import logging as hf

    hf.set_verbosity_error()
    hf.disable_progress_bar()
    logging.getLogger("huggingface_hub").propagate = False  # it has a handler of its own: lines would come twice
