"""The commands `mmgen features`: import, extract, info; the extractor that --type and --set name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..commands import goes_on, quiet, shard_option, store_options
from ..errors import DataError, MmgenError
from ..progress import tell

if TYPE_CHECKING:
    from ..configs import ExtractorConfig


@click.group()
def features() -> None:
    """Create feature stores from published files or from raw images, and inspect them."""


resumable = goes_on("the images so far are kept; run the same command again to continue")


@features.command("import")
@store_options
@resumable
def import_(source: str, store: Path, kind: str, sets: tuple[str, ...], float32: bool) -> None:
    """Import published features from SOURCE into STORE, a folder.

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
    """Extract features from the images in SOURCE into STORE, a folder.

    SOURCE is a folder, tar or parquet files, or a URL. Broken images are listed and skipped. A stopped extraction
    continues when the same command runs again. Shards fill one folder at the same time; nothing is to be merged."""
    from ..features.extract import Shard
    from ..features.images import pictures_of

    config = _extractor_config(kind, sets)
    if getattr(config, "source", "pictures") == "file":
        raise MmgenError(f"--type {kind}: reads published files; use `mmgen features import`")
    chosen = Shard.parse(shard) if shard else None
    _fill_store(config, pictures_of(source), store, float32, chosen)


@features.command()
@click.argument("store", type=click.Path(path_type=Path))
def info(store: Path) -> None:
    """Show what STORE contains and verify its checksums.

    STORE is a folder, or one of the files in it. A description names the extractor that made its features."""
    from ..features.store import FeatureStore

    opened = FeatureStore(store)
    for name, value in opened.describe().items():
        for number, line in enumerate(_format_value(name, value)):
            tell(f"{'' if number else name:<24}{line}")
    for part in opened.parts:
        part.check()
    tell(f"{'checksums':<24}all are right")


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


def _fill_store(config, source, store: Path, float32: bool, shard=None) -> None:
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
    dtype = "float32" if float32 else "float16"
    summary = extract(config.build(), source, store, dtype=dtype, shard=shard, progress=progress)
    for key, reason in summary.broken:
        progress.say(f"skipped {key}: {reason}")
    counts = {
        "already in the store": summary.skipped,
        "broken": len(summary.broken),
        "duplicates": summary.duplicates,
    }
    notes = "".join(f", {count} {what}" for what, count in counts.items() if count)
    progress.say(f"{store}: {summary.written} images written{notes}")
    if summary.failure and (summary.broken or not shard):  # a small shard may have no images
        raise DataError(summary.failure)
