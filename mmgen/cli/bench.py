"""The bench commands: how fast, beside the paper's procedure and the decoders of transformers."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import click

from ..errors import MmgenError
from .runs import quiet

shared_options = [
    click.option(
        "--layers", type=click.IntRange(1), default=12, show_default=True, help="Layers of every encoder and decoder."
    ),
    click.option("--width", type=click.IntRange(8), default=768, show_default=True, help="Width of their states."),
    click.option(
        "--words",
        type=click.IntRange(1000, 100_000),
        default=30_522,
        show_default=True,
        help="Words of the vocabulary.",
    ),
    click.option("--batch", type=click.IntRange(1), default=4, show_default=True, help="Images at a time."),
    click.option(
        "--rounds", type=click.IntRange(1), default=3, show_default=True, help="Rounds that count; one more warms up."
    ),
    click.option("--device", default="cpu", show_default=True, help="cpu, cuda, cuda:1."),
    click.option("--precision", type=click.Choice(["fp32", "bf16"]), default="fp32", show_default=True),
    click.option("--threads", type=click.IntRange(1, 1024), help="Processor threads; by default torch's own choice."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON: settings, every round, ratios, counted work."),
    click.option("--markdown", is_flag=True, help="Print a Markdown table."),
]
without_option = click.option(
    "--without",
    multiple=True,
    type=click.Choice(["naive", "BERT2BERT", "causal BERT"]),
    help="Leave a contestant out. May be repeated.",
)

compile_option = click.option(
    "--compile", "compiled", is_flag=True, help="Encoders and decoders through torch.compile."
)


def with_shared_options(command):
    for option in reversed(shared_options):
        command = option(command)
    return command


@click.group()
def bench() -> None:
    """Speed, measured side by side: this framework, the paper's procedure (one pass a target position), and
    transformers' EncoderDecoderModel and BertLMHeadModel; one shape, random weights, the same made-up data."""


@bench.command()
@with_shared_options
@without_option
@compile_option
@click.option(
    "--questions",
    "-k",
    "questions",
    multiple=True,
    type=click.IntRange(1),
    help="Questions an image. May be repeated; by default 1, 3 and 5.",
)
@click.option(
    "--tokens",
    type=click.IntRange(2, 100),
    default=9,
    show_default=True,
    help="Tokens of a question, its end included.",
)
def train(
    questions: tuple[int, ...], without: tuple[str, ...], tokens: int, as_json: bool, markdown: bool, **shared
) -> None:
    """Learning: a pass forward and back, without the optimiser's step, which is the same for all."""
    terms = _terms(tokens, without, **shared)
    from ..bench import racing

    results = _measured(lambda told: racing.race_learning(terms, tuple(dict.fromkeys(questions)) or (1, 3, 5), told))
    _show(results, terms, "a question", as_json, markdown)


@bench.command()
@with_shared_options
@without_option
@click.option(
    "--search",
    "searches",
    multiple=True,
    type=click.Choice(["greedy", "4 beams", "5 samples"]),
    help="How to search. May be repeated; by default all three.",
)
@click.option(
    "--tokens",
    type=click.IntRange(2, 100),
    default=20,
    show_default=True,
    help="Tokens that every text gets; the end is forbidden.",
)
def decode(
    searches: tuple[str, ...], without: tuple[str, ...], tokens: int, as_json: bool, markdown: bool, **shared
) -> None:
    """Writing: whole searches, the prefix included."""
    terms = _terms(tokens, without, **shared)
    from ..bench import racing

    wanted = {name: racing.SEARCHES[name] for name in searches or racing.SEARCHES}
    results = _measured(lambda told: racing.race_writing(terms, wanted, told))
    _show(results, terms, "a text (with beams: a beam)", as_json, markdown)


@bench.command()
@with_shared_options
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves into this file.")
@click.option(
    "--tokens",
    type=click.IntRange(2, 100),
    default=9,
    show_default=True,
    help="Tokens of a question to learn, its end included.",
)
def scaling(svg: Path | None, tokens: int, as_json: bool, markdown: bool, **shared) -> None:
    """Cost over a range of images, questions an image and beams, with a straight line through it."""
    if svg is not None and not svg.absolute().parent.is_dir():
        raise MmgenError(f"--svg {svg}: there is no folder {svg.parent}")
    terms = _terms(tokens, ("naive", "BERT2BERT", "causal BERT"), **shared)
    from ..bench import racing, tables
    from ..bench import scaling as curves

    found = _measured(lambda told: curves.measure(terms, told))
    if svg is not None:
        curves.draw(found, svg)
    if as_json:
        from dataclasses import asdict

        named = [asdict(curve) | {"line": curve.line, "farthest": curve.off} for curve in found]
        click.echo(json.dumps({"settings": racing.settings(terms), "curves": named}, indent=2))
    elif markdown:
        click.echo(tables.markdown_table(curves.HEADER, curves.rows(found)))
    else:
        click.echo(tables.plain_table(curves.HEADER, curves.rows(found)))


def _terms(
    tokens: int,
    without: tuple[str, ...],
    *,
    layers: int,
    width: int,
    words: int,
    batch: int,
    rounds: int,
    device: str,
    precision: str,
    threads: int | None,
    compiled: bool = False,
):
    """What the options say, as `mmgen.bench.racing.Terms`. Raises MmgenError for a device that is not there."""
    quiet()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    from ..bench.counting import CONTESTANTS, Shape
    from ..bench.racing import Terms

    if device.startswith("meta"):
        raise MmgenError(f"--device {device}: not to be had here: it holds no numbers; cpu or cuda")
    if width % 4:
        raise MmgenError(f"--width {width}: must be a multiple of 4, or of 64 for heads of BERT's size")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise MmgenError(f"--device {device}: not to be had here: {str(error).splitlines()[0]}") from None
    if threads is not None:
        torch.set_num_threads(threads)
    running = tuple(name for name in CONTESTANTS if name not in without)
    return Terms(Shape(layers, width, words), batch, tokens, rounds, device, precision, compiled, contestants=running)


def _measured(race):
    """The race's results; what goes on is told on the error stream, in a terminal only."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return race(lambda line: None)
    with console.status("building") as status:
        return race(functools.partial(status.update))


def _show(results, terms, unit: str, as_json: bool, markdown: bool) -> None:
    from ..bench import racing, tables

    settings = racing.settings(terms)
    if as_json:
        click.echo(json.dumps(tables.as_json(results, settings), indent=2))
    elif markdown:
        click.echo(tables.markdown(results, settings, unit))
    else:
        click.echo(tables.plain(results, settings, unit))
