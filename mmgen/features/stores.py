"""Open a feature store: one file, or several files read as one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from .multi_file import MultiFileStore, files_of
from .store import FeatureStore

ADVICE = "extract or import them, or leave the images out"


def open_store(path: str | Path) -> FeatureStore | MultiFileStore:
    """Open the feature stores under a path: a file, a folder or a pattern. Raises DataError if there are none, or if
    they do not match."""
    path = Path(path)
    files = files_of(path)
    return FeatureStore(path) if files is None else MultiFileStore(path, files)


def gaps(store: FeatureStore | MultiFileStore, keys: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """What a store lacks of some images, a line for each kind of gap, and the keys of these images."""
    for problem, absent in (
        ("no features", [key for key in keys if key not in store]),
        ("no regions", [key for key in keys if key in store and not store.count(key)]),
    ):
        if absent:
            yield f"{store.path}: {problem} for {len(absent):,} of {len(keys):,} images", absent
