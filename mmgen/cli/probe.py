"""The command `mmgen probe`: analyse the models of a run."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import data_option, quiet, run_argument, settings_option, steps_option
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
@data_option
@click.option("--out", type=click.Path(path_type=Path), help="With --data: the folder of the files.")
@settings_option("PROBE.KEY=VALUE", "Set one key of a probe; VALUE as in TOML.")
def probe(
    run: Path,
    names: tuple[str, ...],
    steps: tuple[str, ...],
    data: Path | None,
    out: Path | None,
    sets: tuple[str, ...],
) -> None:
    """Analyse the trained steps in the run folder RUN: what words attend to, how similar the representations of
    pictures and captions are, which attention heads link words to regions.

    Tables and plots are written into RUN/probes; `mmgen report RUN` also shows them. An export is analysed with --data
    RECIPE; the files are then in --out FOLDER."""
    quiet()
    from ..evaluation.probes import text
    from ..inference.export_with_data import DataSource
    from ..progress import Bars
    from ..runs.probe import probe, probe_export

    if (data is None) != (out is None) or (data and steps):
        raise MmgenError("--data and --out belong together, for an export, which has one step; leave out --step")
    if data and out:
        folder, results = out, probe_export(run, DataSource(data), out, names, sets, Bars())
    else:
        folder, results = run / "probes", probe(run, names, steps=steps, sets=sets, progress=Bars())
    for name, findings in results.items():
        if isinstance(findings, MmgenError):
            tell(f"\n{name}: {findings}", err=True)
        else:
            tell(f"\n{text(findings)}\n\n{name}: all files are in {folder / name}")
    if all(isinstance(findings, MmgenError) for findings in results.values()):
        raise click.exceptions.Exit(1)
