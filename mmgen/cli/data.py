"""The commands `mmgen data`: check (what a recipe's data has and lacks), export (in a published format)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..commands import profile_option, quiet, recipe_argument, set_option
from ..errors import MmgenError
from ..progress import Bars, tell
from .recipes import load_recipe

if TYPE_CHECKING:
    from ..configs import DatasetConfig
    from ..recipe.tables import Recipe
    from ..runs.export import Summary


@click.group()
def data() -> None:
    """Inspect data sets, and export them in published formats."""


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
    loaded_recipe, _ = load_recipe(recipe, profile, sets)
    quiet()
    from ..runs.data_summary import DataSummary

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
    if failure is not None:
        raise failure
    if summary.problems:
        raise MmgenError("\n  ".join(["missing data would stop a run:", *summary.problems]))


@data.command("export")
@recipe_argument
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--as", "form", required=True, help="The format, such as vqa2 or vqg; an unknown name lists all formats.")
@click.option("--step", help="Export the data set of this step instead of the recipe's.")
@click.option("--features/--no-features", default=True, help="Whether to export region features too.")
@profile_option
@set_option
def export_(
    recipe: Path,
    folder: Path,
    form: str,
    step: str | None,
    features: bool,
    profile: str | None,
    sets: tuple[str, ...],
) -> None:
    """Write the data set of RECIPE into FOLDER, in a published format.

    The pictures are written too. If the recipe has an input of region features, these are written as the TSV of
    bottom-up-attention. Drawn scenes become a small data set in any format.
    """
    loaded_recipe, _ = load_recipe(recipe, profile, sets)
    quiet()
    from ..registry import installed
    from ..runs.export import export, find_exporter, find_feature_format

    writer = find_exporter(form, installed())
    feature_format = find_feature_format(loaded_recipe, installed()) if features else None
    config = choose_data_set(loaded_recipe, step, writer.required_labels)
    summary = export(loaded_recipe, config, writer, folder, feature_format, Bars())
    counts = ", ".join(f"{count:,} in {split}" for split, count in summary.examples.items())
    tell(f"{folder}: examples: {counts}; {summary.pictures:,} pictures")
    if feature_format and summary.features:
        path = folder / feature_format.exported_as
        tell(f"{path}: features of {summary.features:,} pictures; `mmgen features import` reads them")
    tell("to use the export, put this into a recipe:")
    tell(data_table(summary, folder), wrap=False)


def data_table(summary: Summary, folder: Path) -> str:
    """The recipe's table `[data]` that reads an export, as TOML."""
    from ..recipe.show import toml_key, toml_value

    data = {**summary.data, "folder": str(folder)}
    return "\n".join(["[data]", *(f"{toml_key(key)} = {toml_value(value)}" for key, value in data.items())])


def choose_data_set(recipe: Recipe, step: str | None, labels: Sequence[str]) -> DatasetConfig:
    """The data set of the recipe, or of a step; of several, the first with these labels."""
    if step is None:
        return recipe.data
    recipe.check_steps([step])
    step_data = recipe.steps[step].data
    datasets = [source.data for source in step_data] if isinstance(step_data, tuple) else [step_data or recipe.data]
    return next((data for data in datasets if set(labels) <= set(data.labels)), datasets[0])
