"""The commands `mmgen data`: check (what a recipe's data has and lacks)."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import profile_option, quiet, recipe_argument, set_option
from ..errors import MmgenError
from ..progress import Bars, tell
from .recipes import load_recipe


@click.group()
def data() -> None:
    """Inspect data sets."""


@data.command("check")
@recipe_argument
@profile_option
@set_option
@click.option(
    "--list-missing",
    "missing_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a list of missing items to this file, in tab-separated columns: split, what, and image or example.",
)
def check_(recipe: Path, profile: str | None, sets: tuple[str, ...], missing_file: Path | None) -> None:
    """Count the examples of RECIPE's data set, and what they lack.

    The output also has token lengths, overlaps between splits, and three examples. The exit code is 1 if missing data
    would stop `mmgen run`.
    """
    from ..files import refuse_overwriting, write_text

    refuse_overwriting("--list-missing", missing_file, [recipe])
    loaded_recipe, layers = load_recipe(recipe, profile, sets)
    quiet()
    from ..runs.data_summary import DataSummary
    from ..runs.missing import missing_parts, with_missing_parts

    with with_missing_parts(loaded_recipe, loaded_recipe.ordered(), layers):
        summary = DataSummary(loaded_recipe, Bars(transient=True))
    failure: MmgenError | None = None
    try:
        for line in summary.lines():
            tell(line)
    except MmgenError as error:
        failure = error
    if missing_file and (summary.missing or failure is None):
        rows = [("split", "what", "image or example"), *summary.missing]
        write_text(missing_file, "".join("\t".join(row) + "\n" for row in rows))
        tell(f"\n{missing_file}: {len(summary.missing):,} missing")
    missing = missing_parts(loaded_recipe, loaded_recipe.ordered(), layers)
    if failure is not None:
        raise MmgenError("\n".join([str(failure), *missing]))
    known = "\n".join(summary.problems)  # with the steps that read the features
    problems = [line for line in missing if not (wrong := line.partition(".features: ")[2]) or wrong not in known]
    if problems := [*summary.problems, *problems]:
        raise MmgenError("\n  ".join(["missing data would stop a run:", *problems]))
