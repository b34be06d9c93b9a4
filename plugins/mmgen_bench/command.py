"""The bench commands: speed compared with the paper's procedure and the decoders of transformers."""

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
from mmgen.progress import table, tell

if TYPE_CHECKING:
    from .timing import Settings


@dataclass(frozen=True)
class Options:
    """Options of every bench command; `OPTIONS` has their help."""

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
    click.option("--width", type=click.IntRange(8), default=768, show_default=True, help="Width of the hidden states."),
    click.option(
        "--words",
        type=click.IntRange(1000, 100_000),
        default=30_522,
        show_default=True,
        help="Words in the vocabulary.",
    ),
    click.option("--batch", type=click.IntRange(1), default=4, show_default=True, help="Images per batch."),
    click.option(
        "--rounds", type=click.IntRange(1), default=3, show_default=True, help="Timed rounds, after one warm-up round."
    ),
    click.option("--device", default="cpu", show_default=True, help="cpu, cuda, cuda:1."),
    click.option(
        "--precision",
        type=click.Choice(["fp32", "bf16"]),
        default="fp32",
        show_default=True,
        help="Number format of the forward pass.",
    ),
    click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads; by default torch's choice."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON: settings, every round, ratios, counted work."),
    click.option("--markdown", is_flag=True, help="Print a Markdown table."),
]
without_option = click.option(
    "--without",
    multiple=True,
    type=click.Choice(["naive", "BERT2BERT", "causal BERT"]),
    help="Leave out a system. May be repeated.",
)

compile_option = click.option(
    "--compile", "compiled", is_flag=True, help="Run encoders and decoders through torch.compile."
)


def add_options(command: Callable) -> Callable:
    """Pass the shared options to a command as one argument."""
    names = [field.name for field in fields(Options)]

    @functools.wraps(command)
    def call(**arguments: Any) -> None:
        shared = Options(**{name: arguments.pop(name) for name in names})
        command(shared, **arguments)

    return together(*OPTIONS)(call)


@click.group()
def bench() -> None:
    """Compare the speed of this framework, the paper's procedure (one pass per target position), and transformers'
    EncoderDecoderModel and BertLMHeadModel. All have one shape, random weights and the same synthetic data."""


@bench.command()
@add_options
@without_option
@compile_option
@click.option(
    "--questions",
    "-k",
    "questions",
    multiple=True,
    type=click.IntRange(1),
    help="Questions per image. May be repeated; by default 1, 3 and 5.",
)
@click.option(
    "--tokens",
    type=click.IntRange(2, 100),
    default=9,
    show_default=True,
    help="Tokens per question, including the end token.",
)
def train(options: Options, questions: tuple[int, ...], without: tuple[str, ...], compiled: bool, tokens: int) -> None:
    """Time training: forward and backward pass.

    The optimiser's step is left out because all systems share it."""
    settings = _build_settings(options, tokens, without, compiled)
    from .timing import measure_training

    counts = tuple(dict.fromkeys(questions)) or (1, 3, 5)
    _print_results(
        _run_with_status(lambda say: measure_training(settings, counts, say)), settings, "per question", options
    )


@bench.command()
@add_options
@without_option
@click.option(
    "--search",
    "searches",
    multiple=True,
    type=click.Choice(["greedy", "4 beams", "5 samples"]),
    help="Search method. May be repeated; by default all three.",
)
@click.option(
    "--tokens",
    type=click.IntRange(2, 100),
    default=20,
    show_default=True,
    help="Tokens per text; the end token is forbidden.",
)
def decode(options: Options, searches: tuple[str, ...], without: tuple[str, ...], tokens: int) -> None:
    """Time generation: whole searches, and encoding the prefix."""
    settings = _build_settings(options, tokens, without)
    from .timing import SEARCHES, measure_generation

    decodings = {name: SEARCHES[name] for name in searches or SEARCHES}
    results = _run_with_status(lambda say: measure_generation(settings, decodings, say))
    _print_results(results, settings, "per text (with beams: per beam)", options)


@bench.command()
@add_options
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves to this file.")
@click.option(
    "--tokens",
    type=click.IntRange(2, 100),
    default=9,
    show_default=True,
    help="Tokens per training question, including the end token.",
)
def scaling(options: Options, svg: Path | None, tokens: int) -> None:
    """Time different numbers of images, questions and beams.

    A straight line is fitted to each curve."""
    from mmgen.files import refuse_overwriting

    refuse_overwriting("--svg", svg)
    if svg is not None and not svg.absolute().parent.is_dir():
        raise MmgenError(f"--svg {svg}: folder {svg.parent} does not exist; create it")
    settings = _build_settings(options, tokens, ("naive", "BERT2BERT", "causal BERT"))
    from . import scaling as curves
    from . import tables
    from .timing import describe

    results = _run_with_status(lambda say: curves.measure(settings, say))
    if svg is not None:
        curves.draw(results, svg)
    if options.as_json:
        from dataclasses import asdict

        rows = [asdict(curve) | {"line": curve.line, "farthest": curve.max_deviation} for curve in results]
        tell(json.dumps({"settings": describe(settings), "curves": rows}, indent=2), wrap=False)
    elif options.markdown:
        tell(tables.markdown_table(curves.HEADER, curves.rows_of_curves(results)), wrap=False)
    else:
        tell(table([curves.HEADER, *curves.rows_of_curves(results)], texts=2), wrap=False)


def _build_settings(options: Options, tokens: int, without: tuple[str, ...], compiled: bool = False) -> Settings:
    """The settings of a benchmark. Raises MmgenError for a width that no heads divide, or an unavailable device."""
    quiet()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    from .flops import SYSTEMS, Shape
    from .timing import Settings

    device, width = options.device, options.width
    if device.startswith("meta"):
        raise MmgenError(f"--device {device}: cannot run a benchmark because it stores no values; use cpu or cuda")
    if width % 4:
        raise MmgenError(f"--width {width}: must be a multiple of 4 (a multiple of 64 gives heads of BERT's size)")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise MmgenError(f"--device {device}: not available here: {str(error).splitlines()[0]}") from None
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


def _run_with_status(measure: Callable[[Callable[[str], None]], list]) -> list:
    """Run `measure` and return its results. Progress is shown on stderr, if that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return measure(lambda line: None)
    with console.status("building") as status:
        return measure(functools.partial(status.update))


def _print_results(results: list, settings: Settings, unit: str, options: Options) -> None:
    from . import tables
    from .timing import describe

    description = describe(settings)
    if options.as_json:
        tell(json.dumps(tables.as_json(results, description), indent=2), wrap=False)
    elif options.markdown:
        tell(tables.markdown(results, description, unit), wrap=False)
    else:
        tell(tables.plain(results, description, unit), wrap=False)
