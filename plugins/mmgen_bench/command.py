"""The bench commands: how fast, beside the paper's procedure and the decoders of transformers."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmgen.commands import quiet, together
from mmgen.errors import MmgenError
from mmgen.progress import tell

if TYPE_CHECKING:
    from .run import Settings


@dataclass(frozen=True)
class Options:
    """What every bench command takes; `OPTIONS` has their help."""

    layers: int
    width: int
    words: int
    batch: int
    rounds: int
    device: str
    precision: str
    threads: int | None
    as_json: bool
    markdown: bool


OPTIONS = [
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
    click.option(
        "--precision", type=click.Choice(["fp32", "bf16"]), default="fp32", show_default=True, help="Of the numbers."
    ),
    click.option("--threads", type=click.IntRange(1, 1024), help="Processor threads; by default torch's own choice."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON: settings, every round, ratios, counted work."),
    click.option("--markdown", is_flag=True, help="Print a Markdown table."),
]
without_option = click.option(
    "--without",
    multiple=True,
    type=click.Choice(["naive", "BERT2BERT", "causal BERT"]),
    help="Leave a system out. May be repeated.",
)

compile_option = click.option(
    "--compile", "compiled", is_flag=True, help="Encoders and decoders through torch.compile."
)


def takes_options(command: Callable) -> Callable:
    """Gives a command the options that all share, as one argument."""
    names = [field.name for field in fields(Options)]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        shared = Options(**{name: given.pop(name) for name in names})
        command(shared, **given)

    return together(*OPTIONS)(call)


@click.group()
def bench() -> None:
    """Speed, measured side by side: this framework, the paper's procedure (one pass a target position), and
    transformers' EncoderDecoderModel and BertLMHeadModel; one shape, random weights, the same made-up data."""


@bench.command()
@takes_options
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
def train(options: Options, questions: tuple[int, ...], without: tuple[str, ...], compiled: bool, tokens: int) -> None:
    """Time learning: a pass forward and back.

    The optimiser's step is left out, being the same for all."""
    settings = _settings(options, tokens, without, compiled)
    from .run import measure_learning

    counts = tuple(dict.fromkeys(questions)) or (1, 3, 5)
    _show(_measured(lambda say: measure_learning(settings, counts, say)), settings, "a question", options)


@bench.command()
@takes_options
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
def decode(options: Options, searches: tuple[str, ...], without: tuple[str, ...], tokens: int) -> None:
    """Time writing: whole searches, the prefix included."""
    settings = _settings(options, tokens, without)
    from .run import SEARCHES, measure_writing

    wanted = {name: SEARCHES[name] for name in searches or SEARCHES}
    results = _measured(lambda say: measure_writing(settings, wanted, say))
    _show(results, settings, "a text (with beams: a beam)", options)


@bench.command()
@takes_options
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves into this file.")
@click.option(
    "--tokens",
    type=click.IntRange(2, 100),
    default=9,
    show_default=True,
    help="Tokens of a question to learn, its end included.",
)
def scaling(options: Options, svg: Path | None, tokens: int) -> None:
    """Time a range of images, questions and beams.

    A straight line goes through the times of each."""
    if svg is not None and not svg.absolute().parent.is_dir():
        raise MmgenError(f"--svg {svg}: there is no folder {svg.parent}")
    settings = _settings(options, tokens, ("naive", "BERT2BERT", "causal BERT"))
    from . import scaling as curves
    from . import tables
    from .run import described

    found = _measured(lambda say: curves.measure(settings, say))
    if svg is not None:
        curves.draw(found, svg)
    if options.as_json:
        from dataclasses import asdict

        named = [asdict(curve) | {"line": curve.line, "farthest": curve.off} for curve in found]
        tell(json.dumps({"settings": described(settings), "curves": named}, indent=2), wrap=False)
    elif options.markdown:
        tell(tables.markdown_table(curves.HEADER, curves.rows(found)), wrap=False)
    else:
        tell(tables.plain_table(curves.HEADER, curves.rows(found)), wrap=False)


def _settings(options: Options, tokens: int, without: tuple[str, ...], compiled: bool = False) -> Settings:
    """What is measured. Raises MmgenError for a width that has no heads, and a device that is not there."""
    quiet()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    from .flops import SYSTEMS, Shape
    from .run import Settings

    device, width = options.device, options.width
    if device.startswith("meta"):
        raise MmgenError(f"--device {device}: not to be had here: it holds no numbers; cpu or cuda")
    if width % 4:
        raise MmgenError(f"--width {width}: must be a multiple of 4, or of 64 for heads of BERT's size")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise MmgenError(f"--device {device}: not to be had here: {str(error).splitlines()[0]}") from None
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    return Settings(
        Shape(options.layers, width, options.words),
        options.batch,
        tokens,
        options.rounds,
        device,
        options.precision,
        compiled,
        systems=tuple(name for name in SYSTEMS if name not in without),
    )


def _measured(measure: Callable[[Callable[[str], None]], list]) -> list:
    """What `measure` finds. What goes on is said on the error stream, in a terminal only."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return measure(lambda line: None)
    with console.status("building") as status:
        return measure(functools.partial(status.update))


def _show(results: list, settings: Settings, unit: str, options: Options) -> None:
    from . import tables
    from .run import described

    about = described(settings)
    if options.as_json:
        tell(json.dumps(tables.as_json(results, about), indent=2), wrap=False)
    elif options.markdown:
        tell(tables.markdown(results, about, unit), wrap=False)
    else:
        tell(tables.plain(results, about, unit), wrap=False)
