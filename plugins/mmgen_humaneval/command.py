"""The judge commands: a blind sheet for people, and what they said."""

from __future__ import annotations

from pathlib import Path

import click

from mmgen.commands import quiet
from mmgen.progress import tell


@click.group()
def judge() -> None:
    """Human evaluation: `make` a blind sheet, have it filled, `score` what the judges saved."""


@judge.command("make")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--n",
    "count",
    default=50,
    show_default=True,
    type=click.IntRange(1),
    help="How many test pictures; drawn at random.",
)
@click.option(
    "--step",
    "steps",
    multiple=True,
    help="Only this step of the runs; by default all that have written. May be repeated.",
)
@click.option(
    "--out",
    default=Path("judge.html"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="The sheet; its key is written beside it.",
)
@click.option("--seed", default=0, show_default=True, help="Of the drawing and shuffling.")
@click.option("--together", is_flag=True, help="Picture and caption at once; by default each alone, as in the paper.")
def make_sheet(
    runs: tuple[Path, ...], count: int, steps: tuple[str, ...], out: Path, seed: int, together: bool
) -> None:
    """Write a blind sheet about pictures of RUNS, run folders.

    It has the questions of the runs' steps, and of people about the same pictures."""
    quiet()
    from mmgen.progress import Bars
    from mmgen.registry import installed

    from .form import make
    from .systems import gather

    material = gather(runs, steps, installed())
    sheet = make(material, out, count=count, seed=seed, together=together, progress=Bars())
    for note in sheet.notes:
        tell(note)
    tell(f"{sheet.page}: for the judges; they open it, rate, and send back the file that it saves")
    tell(f"{sheet.key}: who wrote what; keep it from them, `mmgen judge score {sheet.key} SHEET...` needs it")


@judge.command()
@click.argument("key", type=click.Path(path_type=Path))
@click.argument("sheets", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--partial", is_flag=True, help="Take sheets too in which ratings are missing.")
@click.option("--json", "out", type=click.Path(path_type=Path, dir_okay=False), help="Write all numbers to this file.")
def score(key: Path, sheets: tuple[Path, ...], partial: bool, out: Path | None) -> None:
    """Say what the judges said, from KEY and the filled SHEETS.

    Means, t-tests against people's questions, and the judges' agreement."""
    from dataclasses import asdict

    from mmgen.files import refuse_overwriting, write_json

    from .answers import read
    from .results import evaluate, shown

    refuse_overwriting("--json", out, (key, *sheets))
    result = evaluate(read(key, sheets, partial))
    if out:  # before anything is shown: standard output may be closed
        write_json(out, asdict(result))
    for line in shown(result):
        tell(line)
    if out:
        tell(f"{out}: written")
