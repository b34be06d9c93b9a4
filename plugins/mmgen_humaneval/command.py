"""The judge commands: make a blind sheet for people or programs, and score the filled sheets."""

from __future__ import annotations

from pathlib import Path

import click

from mmgen.progress import tell


@click.group()
def judge() -> None:
    """Human evaluation: `make` a blind sheet, let judges fill it, `score` the files they saved.

    A program can judge too: `requests` writes what it has to rate, `fill` makes a filled sheet of its ratings."""


@judge.command("make")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
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
    type=click.Path(path_type=Path),
    help="The sheet; its key is written next to it.",
)
@click.option("--seed", default=0, show_default=True, help="Seed for drawing and shuffling.")
@click.option(
    "--together", is_flag=True, help="Show picture and caption at once; by default one at a time, as in the paper."
)
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
    together: bool,
    criteria: str,
    answer: str,
) -> None:
    """Write a blind sheet about pictures of RUNS (run folders).

    It has the questions that the runs' steps and people asked about the same pictures."""
    from mmgen.registry import installed

    from .form import make
    from .systems import gather, with_answers

    material = gather(runs, steps, installed())
    if answer:
        material = with_answers(material, answer)
    sheet = make(material, out, count=count, seed=seed, together=together, criteria=criteria)
    for note in sheet.notes:
        tell(note)
    tell(f"{sheet.page}: for the judges; they open the page, rate, and send back the file that the page saves")
    tell(f"{sheet.key}: names the authors; keep it secret, `mmgen judge score {sheet.key} SHEET...` needs it")


@judge.command("requests")
@click.argument("sheet", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file; by default that of the sheet with the ending .requests.jsonl.",
)
def requests_of(sheet: Path, out: Path | None) -> None:
    """Write what a program has to rate for a SHEET (the .html file).

    A line has a prompt for one rating, and the hash of its picture. It names no system."""
    from mmgen.files import refuse_overwriting

    from .program import write_requests

    path = out or sheet.with_suffix(".requests.jsonl")
    refuse_overwriting("--out", path, (sheet,))
    count = write_requests(sheet, path)
    tell(f"{path}: {count:,} ratings to give, a prompt for each")


@judge.command("fill")
@click.argument("requests", type=click.Path(path_type=Path))
@click.argument("ratings", type=click.Path(path_type=Path))
@click.option("--judge", "name", default="", help="The program's name; by default the model that the ratings name.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The filled sheet; by default the file of ratings with the ending .sheet.json.",
)
def fill_sheet(requests: Path, ratings: Path, name: str, out: Path | None) -> None:
    """Make a filled sheet of a program's RATINGS of REQUESTS.

    RATINGS are JSON lines with "key" and "rating"."""
    from mmgen.files import refuse_overwriting

    from .program import fill

    path = out or ratings.with_suffix(".sheet.json")
    refuse_overwriting("--out", path, (requests, ratings))
    filled = fill(requests, ratings, name.strip(), path)
    tell(f"{path}: {filled.ratings:,} ratings by {filled.judge}")
    if filled.missing:
        tell(f"{filled.missing:,} ratings are missing; `mmgen judge score` needs --partial")


@judge.command()
@click.argument("key", type=click.Path(path_type=Path))
@click.argument("sheets", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--partial", is_flag=True, help="Accept sheets with missing ratings.")
@click.option(
    "--json", "out", type=click.Path(path_type=Path, dir_okay=False), help="Write all results to this JSON file."
)
def score(key: Path, sheets: tuple[Path, ...], partial: bool, out: Path | None) -> None:
    """Score the filled SHEETS with their KEY.

    Prints means, t-tests against people's questions, and the judges' agreement. Programs are compared with people; only
    without sheets of people do the means and tests use their ratings."""
    from dataclasses import asdict

    from mmgen.files import refuse_overwriting, write_json

    from .answers import read
    from .statistics import evaluate, format_result

    refuse_overwriting("--json", out, (key, *sheets))
    result = evaluate(read(key, sheets, partial))
    if out:  # before anything is printed: standard output may be closed
        write_json(out, asdict(result))
    for line in format_result(result):
        tell(line)
    if out:
        tell(f"{out}: written")
