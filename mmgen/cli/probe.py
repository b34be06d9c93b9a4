"""The probe command: looks into a finished run."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import quiet, run_argument, steps_option
from ..errors import MmgenError
from ..progress import tell


@click.command()
@run_argument
@click.option(
    "--probe",
    "names",
    multiple=True,
    metavar="NAME",
    help="Which: of the recipe's, or any installed one. By default all of the recipe's. May be repeated.",
)
@steps_option
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="PROBE.KEY=VALUE",
    help="A setting of a probe; VALUE as in TOML. May be repeated.",
)
def probe(run: Path, names: tuple[str, ...], steps: tuple[str, ...], sets: tuple[str, ...]) -> None:
    """Look into the steps of RUN (a run folder): what words look at, how alike pictures and captions are inside, which
    heads ground words in regions. Tables and plots are written into RUN/probes; `mmgen report RUN` shows them too."""
    quiet()
    from ..evaluation.probes import text
    from ..progress import Bars
    from ..runs.probe import probe

    found = probe(run, names, steps=steps, sets=sets, progress=Bars())
    for name, findings in found.items():
        if isinstance(findings, MmgenError):
            tell(f"\n{name}: {findings}", err=True)
        else:
            tell(f"\n{text(findings)}\n\n{name}: everything is in {run / 'probes' / name}")
    if all(isinstance(findings, MmgenError) for findings in found.values()):
        raise click.exceptions.Exit(1)
