"""What modules of commands share, the core's and those of plugins: options, quiet libraries, how a command goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

recipe_argument = click.argument("recipe", type=click.Path(path_type=Path))
profile_option = click.option("--profile", help="Which of the recipe's profiles to lay over it.")
set_option = click.option(
    "--set", "sets", multiple=True, metavar="A.B=VALUE", help="Change one setting; VALUE as in TOML. May be repeated."
)

GOES_ON = "mmgen.goes_on"  # where a click context keeps what `goes_on` says


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
