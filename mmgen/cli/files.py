"""Commands about files: features (import, extract, info) and data (check, and export)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..commands import goes_on, profile_option, quiet, recipe_argument, set_option, together
from ..errors import DataError, MmgenError
from ..progress import tell
from .export import export_
from .runs import load

if TYPE_CHECKING:
    from ..configs import ExtractorConfig


@click.group()
def features() -> None:
    """Feature stores: fill them from published files or from raw images, and look into them."""


set_extractor = click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="A setting of the extractor; VALUE as in TOML."
)
with_store_options = together(
    click.argument("source", type=click.Path(path_type=Path)),
    click.argument("store", type=click.Path(path_type=Path)),
    click.option("--type", "kind", required=True, help="The extractor; `mmgen plugins` lists them."),
    set_extractor,
    click.option("--float32", is_flag=True, help="Keep 32 bits a number; by default 16."),
)
kept = goes_on("the images so far are kept, and the same command goes on with the others")


@features.command("import")
@with_store_options
@kept
def import_(source: Path, store: Path, kind: str, sets: tuple[str, ...], float32: bool) -> None:
    """Fill STORE from SOURCE, features that somebody published.

    SOURCE is a file or a folder. The same command goes on where it was stopped.

    A run on imported features is asked about keys of its store (mmgen generate RUN --input image=KEY) and about
    features of your own. About another picture it can be asked only where the extractor that made them is installed:
    --set inputs.image.extractor.type=NAME.
    """
    config = _extractor(kind, sets)
    if getattr(config, "source", "pictures") != "file":
        raise MmgenError(f"--type {kind}: reads raw images; use `mmgen features extract`")
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    _fill(config, source, store, float32)


@features.command()
@with_store_options
@kept
def extract(source: Path, store: Path, kind: str, sets: tuple[str, ...], float32: bool) -> None:
    """Fill STORE from SOURCE, a folder of raw images. Broken images are listed and skipped; the same command
    goes on where it was stopped."""
    from ..features.extract import folder_pictures

    config = _extractor(kind, sets)
    if getattr(config, "source", "pictures") == "file":
        raise MmgenError(f"--type {kind}: reads published files; use `mmgen features import`")
    _fill(config, folder_pictures(source), store, float32)


@features.command()
@click.argument("store", type=click.Path(path_type=Path))
def info(store: Path) -> None:
    """Show what STORE holds, and what made it.

    A folder or a pattern ("regions/*.h5") stands for all its files together."""
    from ..features.multi_file import open_store

    for name, value in open_store(store).describe().items():
        for number, line in enumerate(_told(name, value)):
            tell(f"{'' if number else name:<24}{line}")


def _told(name: str, value: Any) -> list[str]:
    """What a store says of itself, as a person reads it."""
    if name == "bytes":
        return [f"{value:,} ({value / 1e6:,.1f} MB)"]
    if name == "regions per image":
        return [f"{value[0]} to {value[2]}, {value[1]} on average"]
    if isinstance(value, dict):
        return [f"{key}: {json.dumps(each) if isinstance(each, dict | list) else each}" for key, each in value.items()]
    if isinstance(value, list):
        return [", ".join(map(str, value))]
    return [f"{value:,}" if isinstance(value, int) else str(value)]


def _extractor(kind: str, sets: tuple[str, ...]) -> ExtractorConfig:
    """The extractor's config from its name and settings, checked as in a recipe."""
    from ..configs import ExtractorConfig
    from ..recipe.load import part_from
    from ..registry import installed

    return part_from(ExtractorConfig, kind, sets, installed())


def _fill(config, source, store: Path, float32: bool) -> None:
    quiet()
    from ..features.extract import extract
    from ..progress import Bars

    progress = Bars()
    done = extract(config.build(), source, store, dtype="float32" if float32 else "float16", progress=progress)
    for key, reason in done.broken:
        progress.say(f"skipped {key}: {reason}")
    more = [
        f"{done.skipped} were there",
        f"{len(done.broken)} broken",
        f"{done.duplicates} duplicates",
        f"boxes of {done.clipped} images cut to the image",
    ]
    told = [
        text
        for text, count in zip(more, (done.skipped, len(done.broken), done.duplicates, done.clipped), strict=True)
        if count
    ]
    progress.say(f"{store}: {done.written} images written" + "".join(f", {text}" for text in told))


@click.group()
def data() -> None:
    """Data sets: look before you run, and write them as others are published."""


data.add_command(export_)


@data.command("check")
@recipe_argument
@profile_option
@set_option
@click.option(
    "--list-missing",
    "listed",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write what is missing to this file: split, what, and image or example, with tabs between them.",
)
def check_(recipe: Path, profile: str | None, sets: tuple[str, ...], listed: Path | None) -> None:
    """Count what RECIPE's data set holds and what is missing.

    Token lengths, overlaps and three examples follow. The exit code is 1 where something is missing without which
    `mmgen run` would stop.
    """
    from ..files import refuse_overwriting, write_text

    refuse_overwriting("--list-missing", listed, [recipe])
    chosen, _ = load(recipe, profile, sets)
    quiet()
    from ..runs.data_summary import DataSummary

    summary = DataSummary(chosen)
    for line in summary.lines():
        tell(line)
    if listed:
        rows = [("split", "what", "image or example"), *summary.missing]
        write_text(listed, "".join("\t".join(row) + "\n" for row in rows))
        tell(f"\n{listed}: {len(summary.missing):,} missing")
    if summary.problems:
        raise MmgenError("\n  ".join(["a run would stop, because data are missing:", *summary.problems]))
