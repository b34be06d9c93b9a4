"""The command `mmgen write`: generate the test texts of a run again, with another decoding."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import goes_on, quiet, run_argument, settings_option, steps_option


@click.command()
@run_argument
@settings_option("decoding.KEY=VALUE", "Override one key of decoding, such as decoding.num_beams=4.")
@steps_option
@click.option("--name", help="The name of the decoding; by default its options, such as num_beams-4.")
@goes_on("run the same command again to continue")
def write(run: Path, sets: tuple[str, ...], steps: tuple[str, ...], name: str | None) -> None:
    """Generate the test texts in the run folder RUN again, with another decoding; score them and show the table.

    No step is trained. The first texts stay; the new texts are in RUN/steps/STEP/decodings/NAME.
    """
    quiet()
    from ..progress import Bars
    from ..runs.rewrite import rewrite

    rewrite(run, sets, steps=steps, name=name, progress=Bars())
