"""The command `mmgen probe`: analyse the models of a run."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import quiet, run_argument, settings_option, steps_option
from ..errors import MmgenError
from ..progress import tell


@click.command()
@run_argument
@click.option(
    "--probe",
    "names",
    multiple=True,
    metavar="NAME",
    help="A probe of the recipe, or any installed probe. By default all probes of the recipe. May be repeated.",
)
@steps_option
@settings_option("PROBE.KEY=VALUE", "Set one key of a probe; VALUE as in TOML.")
def probe(
    run: Path,
    names: tuple[str, ...],
    steps: tuple[str, ...],
    sets: tuple[str, ...],
) -> None:
    """Analyse the trained steps in the run folder RUN: what words attend to, how similar the representations of
    pictures and captions are, which attention heads link words to regions.

    Tables and plots are written into RUN/probes; `mmgen report RUN` also shows them."""
    quiet()
    from ..evaluation.probes import text
    from ..progress import Bars
    from ..runs.probe import probe

    folder, results = run / "probes", probe(run, names, steps=steps, sets=sets, progress=Bars())
    for name, findings in results.items():
        if isinstance(findings, MmgenError):
            tell(f"\n{name}: {findings}", err=True)
        else:
            tell(f"\n{text(findings)}\n\n{name}: all files are in {folder / name}")
    if all(isinstance(findings, MmgenError) for findings in results.values()):
        raise click.exceptions.Exit(1)
