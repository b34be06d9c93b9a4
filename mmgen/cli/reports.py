"""Commands that show what runs have: report, compare."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import quiet, run_argument
from ..progress import tell


@click.command()
@run_argument
@click.option(
    "--pictures", default=200, show_default=True, type=click.IntRange(1, 5000), help="How many test examples to show."
)
def report(run: Path, pictures: int) -> None:
    """Write report.html into RUN (a run folder): its table, curves, pictures and attention, in one page.

    The folder that several seeds are in stands for the first of them; the table is over all."""
    quiet()
    from ..progress import Bars
    from ..runs.run import report_on

    tell(report_on(run, Bars(), pictures))


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
def compare(runs: tuple[Path, ...]) -> None:
    """Set RUNS side by side: run folders, or folders of seeds (mean and spread).

    Says how much more each reaches than the first, with 95 % intervals, and how their recipes differ."""
    from .. import report

    tell(report.compare(runs))
