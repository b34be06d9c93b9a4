"""Feature stores in shards: check that they are complete, and write them as one file."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from ..errors import DataError
from ..parts import Picture
from ..progress import Progress
from .multi_file import MultiFileStore
from .shards import Shard, shard_files
from .store import FeatureStore
from .writer import StoreWriter

SHOWN = 5  # keys in a message


def checked_shards(
    path: Path, pictures: Iterable[Picture] | None = None, source: str = "", without: Collection[Shard] = ()
) -> MultiFileStore:
    """The shards of `path`. Raises DataError for a missing shard, an image in two shards or in a shard that does not
    own it, and an image without features.

    pictures  those that must have features, of `source`; a shard without any of them may be missing
    without   more shards that may be missing
    """
    files = shard_files(path, lambda shard: pictures is None and shard not in without)
    store = MultiFileStore(path, list(files.values()))
    for shard, part in zip(files, store.stores, strict=True):
        if foreign := next((key for key in part if not shard.owns(key)), None):
            raise DataError(f"{part.path}: image '{foreign}' is not of shard {shard}; extract this shard again")
    missing = [picture.key for picture in pictures or () if picture.key not in store]
    shard_files(path, lambda shard: any(map(shard.owns, missing)))
    if missing:
        names = ", ".join(missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
        raise DataError(f"{path}: {len(missing)} images of {source} have no features: {names}; run their shards again")
    return store


def write_merged(path: Path, store: MultiFileStore, progress: Progress) -> None:
    """Write the images of a store into one file, in the order of its files. Raises DataError if the file is there with
    another image."""
    if path.is_file() and (foreign := next((key for key in FeatureStore(path, in_memory=0) if key not in store), None)):
        raise DataError(f"{path}: has image '{foreign}', which is in no shard; delete the file, and merge again")
    with (
        StoreWriter(path, store.fingerprint, store.stores[0].describe()["dtype"]) as writer,
        progress.task(path.name, len(store), "images") as advance,
    ):
        for part in store.stores:
            for record in part.records():
                try:
                    writer.add(record)
                except DataError as error:
                    raise DataError(f"{part.path}: {error}; extract this shard again") from None
                advance(1)
        writer.finish()
