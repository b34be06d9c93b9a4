"""A feature store in several files, read as one: too large for one file, or created on several machines.

`files_of` takes a file, a folder of files, or a pattern (`regions/*.h5`). All files must have the same fingerprint
and width, and each image must be in only one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from .fingerprints import RANDOM, difference, is_random
from .store import IN_MEMORY, FeatureStore

if TYPE_CHECKING:
    from ..parts import Record

ENDINGS = (".h5", ".hdf5")


def files_of(path: Path) -> list[Path] | None:
    """The files of a folder or a pattern, sorted by name; None for a single file. Raises DataError if there are
    none."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in ENDINGS and not file.name.startswith("."))
        problem = f"a folder without feature stores ({', '.join('*' + ending for ending in ENDINGS)})"
    elif any(letter in path.name for letter in "*?[") and not path.exists():
        files = sorted(file for file in path.parent.glob(path.name) if file.is_file()) if path.parent.is_dir() else []
        problem = "no file matches this pattern"
    else:
        return None
    if not files:
        raise DataError(f"{path}: {problem}; create features with `mmgen features extract` or `mmgen features import`")
    return files


class MultiFileStore:
    """Several stores with the interface of one `FeatureStore`; images are in the order of the files."""

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        # small files are read completely at the first read, so together they must fit into memory
        small = sum(file.stat().st_size for file in files) <= IN_MEMORY
        self.path, self.stores = path, [FeatureStore(file, IN_MEMORY if small else 0) for file in files]
        self._check_match()
        self._index_keys()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "files": [store.path for store in self.stores]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        MultiFileStore.__init__(self, state["path"], state["files"])

    def __len__(self) -> int:
        return sum(map(len, self.stores))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._store_of(key) is not None

    def __iter__(self) -> Iterator[str]:
        return (key for store in self.stores for key in store)

    @property
    def width(self) -> int:
        return self.stores[0].width

    @property
    def fingerprint(self) -> dict[str, Any]:
        return self.stores[0].fingerprint

    @property
    def class_names(self) -> tuple[str, ...]:
        """Class names of the regions, the same in all files that have classes."""
        return next((store.class_names for store in self.stores if store.class_names), ())

    def keys(self) -> Iterator[str]:
        return iter(self)

    def read(self, key: str, limit: int | None = None) -> Record:
        """The record of an image, as `FeatureStore.read`."""
        store = self._store_of(key)
        if store is None:
            example = next((f" (for example '{first_key}')" for first_key in self), "")
            raise DataError(
                f"{self.path}: no features for image '{key}'; the {len(self.stores)} files have {len(self)} "
                f"images{example}; extract or import the missing features, or leave the image out"
            )
        return store.read(key, limit)

    def count(self, key: str) -> int:
        store = self._store_of(key)
        return 0 if store is None else store.count(key)

    def records(self) -> Iterator[Record]:
        for store in self.stores:
            yield from store.records()

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def describe(self) -> dict[str, Any]:
        """A summary of all files together, as `FeatureStore.describe` gives it for one."""
        descriptions = [store.describe() for store in self.stores]
        images, regions = len(self), sum(description["regions"] for description in descriptions)
        counts = [description["regions per image"] for description in descriptions if description["images"]]
        return {
            "path": str(self.path),
            "files": len(descriptions),
            "images": images,
            "regions": regions,
            "regions per image": [min(c[0] for c in counts), round(regions / images, 1), max(c[2] for c in counts)]
            if counts
            else [0, 0.0, 0],
            "images without regions": sum(description["images without regions"] for description in descriptions),
            "width": self.width,
            "dtype": _join_distinct(description["dtype"] for description in descriptions),
            "compression": _join_distinct(description["compression"] for description in descriptions),
            "holds": [
                name
                for name in descriptions[0]["holds"]
                if all(name in description["holds"] for description in descriptions)
            ],
            **({"classes": len(self.class_names)} if self.class_names else {}),
            "bytes": sum(description["bytes"] for description in descriptions),
            **({"weights": RANDOM} if is_random(self.fingerprint) else {}),
            "fingerprint": self.fingerprint,
        }

    def _check_match(self) -> None:
        """Raises DataError for a store that was not made as the first one."""
        first = self.stores[0]
        for store in self.stores[1:]:
            if store.fingerprint != first.fingerprint:
                raise DataError(
                    f"{store.path}: features differ from those of {first.path} "
                    f"({difference(store.fingerprint, first.fingerprint)}); use the same extractor and settings for "
                    "all files"
                )
            if store.width != first.width:
                raise DataError(
                    f"{store.path}: features have width {store.width}, but those of {first.path} have width "
                    f"{first.width}"
                )
            if store.class_names and store.class_names != self.class_names:
                raise DataError(
                    f"{store.path}: class names differ from those of earlier files; use the same extractor and "
                    "settings for all files"
                )

    def _index_keys(self) -> None:
        """Sort all keys, and remember the file of each key."""
        import numpy as np

        keys = np.concatenate([store.encoded_keys for store in self.stores])
        files = np.repeat(np.arange(len(self.stores), dtype=np.int32), [len(store) for store in self.stores])
        order = np.argsort(keys, kind="stable")
        self._keys, self._files = keys[order], files[order]
        (duplicates,) = np.nonzero(self._keys[1:] == self._keys[:-1])
        if len(duplicates):
            first_path, path = (self.stores[self._files[place]].path for place in (duplicates[0], duplicates[0] + 1))
            raise DataError(
                f"{path}: image '{self._keys[duplicates[0]].decode()}' is also in {first_path} ({len(duplicates)} "
                "images are in two files); each image must be in only one file"
            )

    def _store_of(self, key: str) -> FeatureStore | None:
        import numpy as np

        encoded_key = np.bytes_(key.encode())
        place = int(np.searchsorted(self._keys, encoded_key))
        return self.stores[self._files[place]] if place < len(self._keys) and self._keys[place] == encoded_key else None


def _join_distinct(values: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(values))
