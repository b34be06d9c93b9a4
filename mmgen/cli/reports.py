"""Commands that show what a run has: report."""

from __future__ import annotations

from pathlib import Path

import click

from .runs import quiet


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--pictures", default=200, show_default=True, type=click.IntRange(1, 5000), help="How many test examples to show."
)
def report(run: Path, pictures: int) -> None:
    """Write report.html into RUN (a run folder): its table, curves, pictures and attention, in one page."""
    quiet()
    from .. import run as runs
    from ..progress import Bars

    click.echo(runs.report_on(run, Bars(), pictures))
