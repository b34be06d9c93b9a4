"""The write command: a finished run writes again, with another decoding."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import goes_on, quiet, run_argument, steps_option


@click.command()
@run_argument
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="decoding.KEY=VALUE",
    help="An option of decoding, such as decoding.num_beams=4. May be repeated.",
)
@steps_option
@click.option("--name", help="What the decoding is called; by default after its options: num_beams-4.")
@goes_on("the same command goes on where it stopped")
def write(run: Path, sets: tuple[str, ...], steps: tuple[str, ...], name: str | None) -> None:
    """Write again with the steps of RUN (a run folder) and another decoding, score that, and show the table.

    Nothing is learnt. The first texts stay; the new ones are in RUN/steps/STEP/decodings/NAME.
    """
    quiet()
    from ..progress import Bars
    from ..runs.rewrite import rewrite

    rewrite(run, sets, steps=steps, name=name, progress=Bars())
