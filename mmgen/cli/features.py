"""The commands `mmgen features`: import, extract, info; the extractor that --type and --set name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..commands import (
    goes_on,
    quiet,
    shard_option,
    store_options,
)
from ..errors import DataError, MmgenError
from ..progress import tell

if TYPE_CHECKING:
    from ..configs import ExtractorConfig

MOST_NAMED = 20  # duplicates that are named; a file may be doubled as a whole


@click.group()
def features() -> None:
    """Create feature stores from published files or from raw images, and inspect them."""


resumable = goes_on("the images so far are kept; run the same command again to continue")


@features.command("import")
@store_options
@resumable
def import_(source: str, store: Path, kind: str, sets: tuple[str, ...], float32: bool) -> None:
    """Import published features from SOURCE into STORE.

    SOURCE is a file or a folder. A stopped import continues when the same command runs again.

    A run on imported features answers queries about keys of its store (mmgen generate RUN --input image=KEY) and about
    your own features. Queries about other pictures need the extractor that made the features: --set
    inputs.image.extractor.type=NAME.
    """
    config = _extractor_config(kind, sets)
    if getattr(config, "source", "pictures") != "file":
        raise MmgenError(f"--type {kind}: reads raw images; use `mmgen features extract`")
    if not Path(source).exists():
        raise DataError(f"{source}: no such file or folder")
    _fill_store(config, Path(source), store, float32)


@features.command()
@store_options
@shard_option
@resumable
def extract(source: str, store: Path, kind: str, sets: tuple[str, ...], float32: bool, shard: str | None) -> None:
    """Extract features from the images in SOURCE into STORE.

    SOURCE is a folder, tar or parquet files, or a URL. Broken images are listed and skipped. A stopped extraction
    continues when the same command runs again. The files of all shards are one store: give their folder, or a pattern
    such as regions-*-of-8.h5."""
    from ..features.extract import NoFeatures
    from ..features.picture_sources import pictures_of
    from ..features.shards import Shard

    config = _extractor_config(kind, sets)
    if getattr(config, "source", "pictures") == "file":
        raise MmgenError(f"--type {kind}: reads published files; use `mmgen features import`")
    chosen = Shard.parse(shard) if shard else None
    pictures = pictures_of(source, chosen)
    store = chosen.path(store) if chosen else store
    try:
        if pictures or not chosen:
            _fill_store(config, pictures, store, float32)
            return
    except NoFeatures as error:  # archives are listed as they are read
        if error.broken or not chosen:
            raise
    tell(f"{store}: none of the images of {source} is in shard {chosen}; use fewer shards", err=True)


@features.command()
@click.argument("store", type=click.Path(path_type=Path))
def info(store: Path) -> None:
    """Show what STORE contains and which extractor made its features.

    STORE is a file, or a folder or pattern ("regions/*.h5") whose files are read as one store."""
    from ..features.stores import open_store

    for name, value in open_store(store).describe().items():
        for number, line in enumerate(_format_value(name, value)):
            tell(f"{'' if number else name:<24}{line}")


def _format_value(name: str, value: Any) -> list[str]:
    """The lines that show one entry of a store's description."""
    if name == "bytes":
        return [f"{value:,} ({value / 1e6:,.1f} MB)"]
    if name == "regions per image":
        return [f"{value[0]} to {value[2]}, {value[1]} on average"]
    if isinstance(value, dict):
        return [
            f"{key}: {json.dumps(detail) if isinstance(detail, dict | list) else detail}"
            for key, detail in value.items()
        ]
    if isinstance(value, list):
        return [", ".join(map(str, value))]
    return [f"{value:,}" if isinstance(value, int) else str(value)]


def _extractor_config(kind: str, sets: tuple[str, ...]) -> ExtractorConfig:
    """The checked config of an extractor, from its name and settings."""
    from ..configs import ExtractorConfig
    from ..recipe.load import part_from
    from ..registry import installed

    return part_from(ExtractorConfig, kind, sets, installed())


def _fill_store(config, source, store: Path, float32: bool) -> None:
    quiet()
    from ..features.extract import extract
    from ..progress import Bars
    from ..recipe.tables import placed_parts

    if missing := [
        f"{'.'.join((*path, key))}: {problem}"
        for path, part in placed_parts(config)
        for key, problem in part.missing_here().items()
        if problem
    ]:
        raise DataError("\n".join(missing))
    progress = Bars()
    summary = extract(config.build(), source, store, dtype="float32" if float32 else "float16", progress=progress)
    for key, reason in summary.broken:
        progress.say(f"skipped {key}: {reason}")
    for key, place in summary.duplicates[:MOST_NAMED]:
        progress.say(f"skipped {key}: {f'{place}: ' * bool(place)}duplicate; the first image with this key is stored")
    candidates = [
        f"{summary.skipped} already in the store",
        f"{len(summary.broken)} broken",
        f"{len(summary.duplicates)} duplicates",
        f"boxes of {summary.clipped} images clipped to the image",
    ]
    notes = [
        text
        for text, count in zip(
            candidates, (summary.skipped, len(summary.broken), len(summary.duplicates), summary.clipped), strict=True
        )
        if count
    ]
    progress.say(f"{store}: {summary.written} images written" + "".join(f", {text}" for text in notes))
    if summary.failure:
        raise DataError(summary.failure)
