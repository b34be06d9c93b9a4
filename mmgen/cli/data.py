"""The commands `mmgen data`: check (what a recipe's data has and lacks)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from ..commands import profile_option, quiet, recipe_argument, set_option
from ..errors import MmgenError
from ..progress import tell
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
    help="Write a list of missing items to this file, in two columns with a tab: image or example, and what.",
)
def check_(recipe: Path, profile: str | None, sets: tuple[str, ...], missing_file: Path | None) -> None:
    """Count the examples of RECIPE's data set, and what they lack.

    The exit code is 1 if missing data would stop `mmgen run`.
    """
    from ..files import refuse_overwriting, write_text

    refuse_overwriting("--list-missing", missing_file, [recipe])
    loaded_recipe, layers = load_recipe(recipe, profile, sets)
    quiet()
    from ..data.datasets import Datasets
    from ..runs.data_check import all_findings
    from ..runs.prepare import missing_parts, with_missing_parts

    with with_missing_parts(loaded_recipe, loaded_recipe.ordered(), layers):
        datasets = Datasets(loaded_recipe)
    encoder, backbone = loaded_recipe.backbone, None
    with contextlib.suppress(MmgenError):  # an encoder that is missing is among the missing parts
        backbone = encoder.build(texts=[*datasets.texts()])
    findings = list(all_findings(loaded_recipe, datasets, backbone))
    problems = []
    for finding in findings:
        if finding.stops:
            problems.append(str(finding))
        else:
            tell(str(finding))
    if missing_file:
        lines = [f"{id_}\t{finding.what}\n" for finding in findings for id_ in finding.ids]
        write_text(missing_file, "".join(["image or example\twhat\n", *lines]))
        tell(f"\n{missing_file}: {len(lines):,} missing")
    if problems := [*problems, *missing_parts(loaded_recipe, loaded_recipe.ordered(), layers)]:
        raise MmgenError("\n  ".join(["this would stop a run:", *problems]))
