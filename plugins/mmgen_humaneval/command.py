"""The judge commands: make a blind sheet for people or programs, and score the filled sheets."""

from __future__ import annotations

from pathlib import Path

import click

from mmgen.commands import FILE, PATH
from mmgen.progress import tell


@click.group()
def judge() -> None:
    """Human evaluation: `make` a blind sheet, let judges fill it, `score` the files they saved.

    A program can judge too: `requests` writes what it has to rate, `fill` makes a filled sheet of its ratings."""


@judge.command("make")
@click.argument("runs", nargs=-1, required=True, type=PATH)
@click.option(
    "--n",
    "count",
    default=50,
    show_default=True,
    type=click.IntRange(1),
    help="Number of test pictures, drawn at random.",
)
@click.option(
    "--step",
    "steps",
    multiple=True,
    help="Only this step of the runs; by default all that have generated texts. May be repeated.",
)
@click.option(
    "--out",
    default=Path("judge.html"),
    show_default=True,
    type=PATH,
    help="The sheet; its key is written next to it.",
)
@click.option("--seed", default=0, show_default=True, help="Seed for drawing and shuffling.")
@click.option(
    "--criteria",
    type=click.Choice(["paper", "qgeval", "all"]),
    default="paper",
    show_default=True,
    help="The three criteria of the BERT-gen paper, the seven dimensions of QGEval, or all ten.",
)
@click.option(
    "--answer",
    default="",
    metavar="NAME",
    help="Input or fact of the examples with the answer that the questions were written for (answer consistency).",
)
def make_sheet(
    runs: tuple[Path, ...],
    count: int,
    steps: tuple[str, ...],
    out: Path,
    seed: int,
    criteria: str,
    answer: str,
) -> None:
    """Write a blind sheet about pictures of RUNS (run folders).

    It has the questions that the runs' steps and people asked about the same pictures."""
    from mmgen.registry import installed

    from .form import make
    from .systems import gather

    material = gather(runs, steps, installed(), answer)
    notes = make(material, out, count=count, seed=seed, criteria=criteria)
    for note in notes:
        tell(note)
    tell(f"{out}: for the judges; they open the page, rate, and send back the file that the page saves")
    key = out.with_suffix(".key.json")
    tell(f"{key}: names the authors; keep it secret, `mmgen judge score {key} SHEET...` needs it")


@judge.command("requests")
@click.argument("sheet", type=PATH)
def write_requests(sheet: Path) -> None:
    """Write what a program has to rate for a SHEET (the .json file beside the page).

    A line has a prompt for one rating, and the hash of its picture. It names no system."""
    from . import program
    from .sheet import Sheet, read

    out = sheet.with_suffix(".requests.jsonl")
    count = program.write_requests(read(sheet, Sheet), out)
    tell(f"{out}: {count:,} ratings to give, a prompt for each")


@judge.command()
@click.argument("sheet", type=PATH)
@click.argument("ratings", type=PATH)
@click.option("--judge", "name", default="", help="The program's name; by default the model that the ratings name.")
def fill(sheet: Path, ratings: Path, name: str) -> None:
    """Make a filled sheet of a program's RATINGS of a SHEET (the .json file beside the page).

    RATINGS are JSON lines with "key" and "rating"."""
    from . import program
    from .sheet import Sheet, read

    out = ratings.with_suffix(".sheet.json")
    judge, missing = program.fill(read(sheet, Sheet), ratings, name.strip(), out)
    tell(f"{out}: ratings by {judge}")
    if missing:
        tell(f"{missing:,} ratings are missing; `mmgen judge score` needs --partial")


@judge.command()
@click.argument("key", type=PATH)
@click.argument("sheets", nargs=-1, required=True, type=PATH)
@click.option("--partial", is_flag=True, help="Accept sheets with missing ratings.")
@click.option("--json", "out", type=FILE, help="Write all results to this JSON file.")
def score(key: Path, sheets: tuple[Path, ...], partial: bool, out: Path | None) -> None:
    """Score the filled SHEETS with their KEY.

    Prints means, t-tests against people's questions, and the judges' agreement."""
    from dataclasses import asdict

    from mmgen.files import refuse_overwriting, write_json

    from .statistics import evaluate, format_result, read_answers

    refuse_overwriting("--json", out, (key, *sheets))
    result = evaluate(read_answers(key, sheets, partial))
    if out:  # before anything is printed: standard output may be closed
        write_json(out, asdict(result))
    for line in format_result(result):
        tell(line)
    if out:
        tell(f"{out}: written")
