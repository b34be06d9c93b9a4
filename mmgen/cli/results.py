"""Commands that show results: report and compare."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import FILE, PATH, run_argument
from ..progress import Bars, tell


@click.command()
@run_argument
@click.option(
    "--pictures", default=200, show_default=True, type=click.IntRange(1, 5000), help="Number of test examples to show."
)
def report(run: Path, pictures: int) -> None:
    """Write the table, curves and pictures of a run into one HTML page.

    The page is RUN/report.html. For a folder of several seeds, it shows the first seed, and its table is over all
    seeds."""
    from ..runs.run import report_on

    tell(report_on(run, Bars(), pictures))


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH)
@click.option("--rows", metavar="STEP,STEP", help="Compare two rows of one run, the first minus the second.")
@click.option("--columns", metavar="SCORE,...", help="The scores to show, in this order; by default all.")
@click.option("--digits", default=2, show_default=True, type=click.IntRange(0, 6), help="Decimals.")
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="Also write the scores (.csv) or the tables (.tex for LaTeX, .md) to this file.",
)
def compare(runs: tuple[Path, ...], rows: str | None, columns: str | None, digits: int, out: Path | None) -> None:
    """Compare the scores and recipes of several runs.

    RUNS are run folders, or folders of seeds (mean and spread). The output has the scores, their differences from the
    first run with 95 % intervals, and the differences between the recipes. A single run is shown alone; with --rows,
    two of its steps are compared, with p."""
    from .. import report
    from ..scoring.table import as_markdown, chosen, write

    first, _, second = (rows or "").partition(",")
    if rows and (not second or len(runs) != 1):
        raise click.UsageError("--rows: give one run and two of its steps, such as --rows image,image_frozen")
    tables = [report.compare_rows(runs[0], first, second)] if rows else report.compare(runs)
    if columns:
        tables = chosen(tables, [column.strip() for column in columns.split(",")])
    tell(as_markdown(tables, digits))
    if out is not None:
        write(tables, out, digits)
        tell(f"{out}: written")
