"""Open a feature store: one file, or several files read as one."""

from __future__ import annotations

from pathlib import Path

from .multi_file import MultiFileStore, files_of
from .store import FeatureStore


def open_store(path: str | Path) -> FeatureStore | MultiFileStore:
    """Open the feature stores under a path: a file, a folder or a pattern. Raises DataError if there are none, or if
    they do not match."""
    path = Path(path)
    files = files_of(path)
    return FeatureStore(path) if files is None else MultiFileStore(path, files)
