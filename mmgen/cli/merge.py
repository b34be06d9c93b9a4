"""The command `mmgen merge`: join the files of all shards, and find what is missing or there twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import DataError, MmgenError
from ..progress import tell

if TYPE_CHECKING:
    from ..parts import Picture

SHOWN = 5  # keys in a message


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only check the shards; write nothing.")
@click.option(
    "--source",
    type=click.Path(path_type=Path),
    help="Of features: the folder of images; every one of them must have features.",
)
def merge(path: Path, check: bool, source: Path | None) -> None:
    """Join all shards of PATH, the file that was given to `mmgen features extract`, `mmgen generate` or `mmgen predict`
    with --shard.

    Every shard must be there, with the same model or extractor, and nothing may be missing or there twice.
    """
    from ..features.multi_file import ENDINGS

    if path.suffix in ENDINGS:
        _merge_features(path, check, source)
    elif source:
        raise MmgenError(f"--source {source}: is only for features, files of {' or '.join(ENDINGS)}")
    else:
        _merge_answers(path, check)


def _merge_answers(path: Path, check: bool) -> None:
    import json

    from ..files import refuse_overwriting, write_text
    from ..inference.shard_answers import merged

    answers = list(merged(path))
    if check:
        tell(f"{path}: all shards are complete, {len(answers)} answers")
        return
    refuse_overwriting("PATH", path)
    write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in answers))
    tell(f"{path}: {len(answers)} line{'s' * (len(answers) != 1)}")


def _merge_features(path: Path, check: bool, source: Path | None) -> None:
    from ..features.extract import folder_pictures
    from ..features.multi_file import MultiFileStore
    from ..features.shards import shard_files
    from ..features.writer import StoreWriter
    from ..progress import Bars

    pictures: Sequence[Picture] = folder_pictures(source) if source else []
    keys = [picture.key for picture in pictures]
    files = shard_files(path, lambda shard: source is None or any(map(shard.owns, keys)))
    store = MultiFileStore(path, list(files.values()))
    for shard, part in zip(files, store.stores, strict=True):
        if foreign := next((key for key in part if not shard.owns(key)), None):
            raise DataError(f"{part.path}: image '{foreign}' is not of shard {shard}; extract this shard again")
    if missing := [key for key in keys if key not in store]:
        names = ", ".join(missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
        raise DataError(f"{path}: {len(missing)} images of {source} have no features: {names}; run their shards again")
    if check:
        tell(f"{path}: all shards are complete, {len(store)} images")
        return
    progress = Bars()
    with (
        StoreWriter(path, store.fingerprint, store.stores[0].describe()["dtype"]) as writer,
        progress.task(path.name, len(store), "images") as advance,
    ):
        for part in store.stores:
            for record in part.records():
                writer.add(record)
                advance(1)
        writer.finish()
    tell(f"{path}: {len(store)} images")
