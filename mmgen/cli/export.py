"""The command that writes a data set in a published format: data export."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..commands import profile_option, quiet, recipe_argument, set_option
from ..errors import MmgenError, did_you_mean
from ..progress import Bars, tell
from .runs import load

if TYPE_CHECKING:
    from ..configs import DatasetConfig
    from ..recipe.tables import Recipe


@click.command("export")
@recipe_argument
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--as", "form", required=True, help="The format, such as vqa2 or vqg; one that there is not lists all.")
@click.option("--step", help="The data that this step brings, in place of the recipe's own.")
@click.option("--features/--no-features", default=True, help="Whether to write region features too.")
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
    """Write RECIPE's data set into FOLDER as others are published.

    Pictures are written too, and the features of their regions as bottom-up-attention's TSV, where the recipe has an
    input of such features. Drawn scenes become a miniature of every format.
    """
    chosen, _ = load(recipe, profile, sets)
    quiet()
    from ..registry import installed
    from ..runs.export import FEATURES, export, exporter

    writer = exporter(form, installed())
    done = export(chosen, _data(chosen, step, writer.labels), writer, folder, features, Bars())
    counts = ", ".join(f"{count:,} in {split}" for split, count in done.examples.items())
    tell(f"{folder}: examples: {counts}; {done.pictures:,} pictures")
    if done.features:
        tell(f"{folder / FEATURES}: features of {done.features:,} pictures; `mmgen features import` reads them")
    tell("a recipe reads it with:\n[data]")
    for key, value in {**done.data, "folder": str(folder)}.items():
        tell(f"{key} = {json.dumps(value, ensure_ascii=False)}")


def _data(recipe: Recipe, step: str | None, labels: Sequence[str]) -> DatasetConfig:
    """The recipe's data, or what a step brings; of several the first with these labels."""
    if step is None:
        return recipe.data
    if step not in recipe.steps:
        raise MmgenError(f"--step {step}: no such step{did_you_mean(step, recipe.steps)}")
    own = recipe.steps[step].data
    several = [source.data for source in own] if isinstance(own, tuple) else [own or recipe.data]
    return next((data for data in several if set(labels) <= set(data.labels)), several[0])
