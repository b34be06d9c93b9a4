"""Commands that show the results of runs: report, compare."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import quiet, run_argument
from ..progress import tell


@click.command()
@run_argument
@click.option(
    "--pictures", default=200, show_default=True, type=click.IntRange(1, 5000), help="Number of test examples to show."
)
def report(run: Path, pictures: int) -> None:
    """Write report.html into the run folder RUN: the table, curves, pictures and attention on one page.

    For a folder of several seeds, the page shows the first seed, and its table is over all seeds."""
    quiet()
    from ..progress import Bars
    from ..runs.run import report_on

    tell(report_on(run, Bars(), pictures))


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--rows", metavar="STEP,STEP", help="Compare two rows of one run, the first minus the second.")
@click.option("--columns", metavar="SCORE,...", help="The scores to show, in this order; by default all.")
@click.option("--digits", default=2, show_default=True, type=click.IntRange(0, 6), help="Decimals.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the scores (.csv) or the tables (.tex for LaTeX, .md) to this file.",
)
def compare(runs: tuple[Path, ...], rows: str | None, columns: str | None, digits: int, out: Path | None) -> None:
    """Compare RUNS: run folders, or folders of seeds (mean and spread).

    The output has the scores, their differences from the first run with 95 % intervals, and the differences between
    the recipes. A single run is shown alone; with --rows, two of its steps are compared, with p."""
    from .. import report
    from ..scoring.table import as_markdown, chosen, write

    names = tuple(rows.split(",")) if rows else ()
    if names and (len(names) != 2 or len(runs) != 1):
        raise click.UsageError("--rows: give one run and two of its steps, such as --rows image,image_frozen")
    tables = [report.compare_rows(runs[0], *names)] if names else report.compare(runs)
    if columns:
        tables = chosen(tables, columns.split(","))
    tell(as_markdown(tables, digits))
    if out is not None:
        write(tables, out, digits)
        tell(f"{out}: written")
