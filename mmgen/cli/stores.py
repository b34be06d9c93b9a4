"""Commands about data: data get and check, and features import, extract and info."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..commands import (
    PATH,
    goes_on,
    profile_option,
    recipe_argument,
    repeated,
    set_option,
    shard_option,
    together,
)
from ..errors import DataError, MmgenError
from ..progress import Bars, tell
from .downloads import get
from .recipes import load_recipe


@click.group()
def data() -> None:
    """Fetch a published data set, or check one."""


data.add_command(get)


@data.command("check")
@recipe_argument
@profile_option
@set_option
def check_(**options: Any) -> None:
    """Count the examples of RECIPE's data set, and what they lack.

    The exit code is 1 if missing data would stop `mmgen run`."""
    recipe, layers = load_recipe(**options)
    from ..data.datasets import Datasets
    from ..runs.data_check import all_findings
    from ..runs.prepare import missing_parts, with_missing_parts

    with with_missing_parts(recipe, recipe.ordered(), layers):
        datasets = Datasets(recipe)
    problems = list[str]()
    for finding in all_findings(recipe, datasets):
        if finding.stops:
            problems.append(str(finding))
        else:
            tell(finding)
    if problems := [*problems, *missing_parts(recipe, recipe.ordered(), layers)]:
        raise MmgenError("\n  ".join(["this would stop a run:", *problems]))


@click.group()
def features() -> None:
    """Extract, import and inspect image features."""


store_options = together(
    click.argument("source"),  # a path, or the URL of an object store
    click.argument("store", type=PATH),
    click.option("--type", "kind", required=True, help="The extractor; `mmgen plugins` lists all."),
    repeated("--set", "sets", "KEY=VALUE", "Set one key of the extractor; VALUE as in TOML."),
    click.option("--float32", is_flag=True, help="Store features as float32; the default is float16."),
)
resumable = goes_on("the images so far are kept; run the same command again to continue")


@features.command("import")
@store_options
@resumable
def import_(**options: Any) -> None:
    """Import published features from SOURCE into STORE, a folder.

    SOURCE is a file or a folder. A stopped import continues when the same command runs again.

    A run on imported features answers queries about keys of its store (mmgen generate RUN --input image=KEY) and about
    your own features. Queries about other pictures need the extractor that made the features: --set
    inputs.image.extractor.type=NAME.
    """
    _fill("file", **options)


@features.command()
@store_options
@shard_option
@resumable
def extract(**options: Any) -> None:
    """Extract features from the images in SOURCE into STORE, a folder.

    SOURCE is a folder, tar or parquet files, or a URL. Broken images are listed and skipped. A stopped extraction
    continues when the same command runs again. Shards fill one folder at the same time; nothing is to be merged."""
    _fill("pictures", **options)


def _fill(
    reads: str, source: str, store: Path, kind: str, sets: tuple[str, ...], float32: bool, shard: str | None = None
) -> None:
    """Fill a store by an extractor that reads published files ("file") or pictures."""
    from ..configs import ExtractorConfig
    from ..features.extract import Shard, extract
    from ..features.images import pictures_of
    from ..recipe.load import part_from
    from ..registry import installed

    part = Shard.parse(shard) if shard else None
    config = part_from(ExtractorConfig, kind, sets, installed())
    if config.source != reads:
        other = "extract" if reads == "file" else "import"
        raise MmgenError(f"--type {kind}: is for `mmgen features {other}`")
    images = Path(source) if reads == "file" else pictures_of(source)
    progress, dtype = Bars(), "float32" if float32 else "float16"
    summary = extract(config.build(), images, store, dtype=dtype, shard=part, progress=progress)
    for key, why in summary.broken:
        progress.say(f"skipped {key}: {why}")
    counts = f"{summary.written} images written, {summary.skipped} already in the store"
    progress.say(f"{store}: {counts}, {len(summary.broken)} broken, {summary.duplicates} duplicates")
    if summary.failure and (summary.broken or not shard):  # a small shard may have no images
        raise DataError(summary.failure)


@features.command()
@click.argument("store", type=PATH)
def info(store: Path) -> None:
    """Show what STORE contains and verify its checksums.

    STORE is a folder, or one of the files in it. A description names the extractor that made its features."""
    from ..features.store import FeatureStore

    opened = FeatureStore(store)
    tell(json.dumps(opened.describe(), indent=2, ensure_ascii=False))
    for part in opened.parts:
        part.check()
    tell("all checksums are right")
