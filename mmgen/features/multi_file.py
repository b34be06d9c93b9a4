"""Feature stores in several files, read as one: what is too large for one file, or was made on several machines.

`open_store` takes a file, a folder of them, or a pattern (`regions/*.h5`). All files must be of one fingerprint and
width, and hold each image once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from .fingerprints import difference
from .store import IN_MEMORY, FeatureStore

if TYPE_CHECKING:
    from ..parts import Record

ENDINGS = (".h5", ".hdf5")


def open_store(path: str | Path) -> FeatureStore | MultiFileStore:
    """The features under a path. Raises DataError where there are none, or they do not belong together."""
    files = files_of(Path(path))
    return FeatureStore(path) if files is None else MultiFileStore(Path(path), files)


def files_of(path: Path) -> list[Path] | None:
    """The files of a folder or a pattern by name; None for what is one file. Raises DataError when there are none."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in ENDINGS and not file.name.startswith("."))
        what = f"a folder without feature stores ({', '.join('*' + ending for ending in ENDINGS)})"
    elif any(letter in path.name for letter in "*?[") and not path.exists():
        files = sorted(file for file in path.parent.glob(path.name) if file.is_file()) if path.parent.is_dir() else []
        what = "no file is called like that"
    else:
        return None
    if not files:
        raise DataError(f"{path}: {what}; features are made by `mmgen features extract` or `mmgen features import`")
    return files


class MultiFileStore:
    """Several stores with the face of one `FeatureStore`; images come file after file."""

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        # what is read whole at the first read must fit into memory together
        small = sum(file.stat().st_size for file in files) <= IN_MEMORY
        self.path, self.stores = path, [FeatureStore(file, IN_MEMORY if small else 0) for file in files]
        self._belong_together()
        self._index()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "files": [store.path for store in self.stores]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        MultiFileStore.__init__(self, state["path"], state["files"])

    def __len__(self) -> int:
        return sum(map(len, self.stores))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._of(key) is not None

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
        """Names of the classes that regions may be of, the same in all files that tell them."""
        return next((store.class_names for store in self.stores if store.class_names), ())

    def keys(self) -> Iterator[str]:
        return iter(self)

    def read(self, key: str, limit: int | None = None) -> Record:
        """As of one store."""
        store = self._of(key)
        if store is None:
            example = next((f", '{each}' say" for each in self), "")
            raise DataError(
                f"{self.path}: no features of image '{key}' among the {len(self)} images of {len(self.stores)} "
                f"files{example}; extract or import them, or leave the image out"
            )
        return store.read(key, limit)

    def count(self, key: str) -> int:
        store = self._of(key)
        return 0 if store is None else store.count(key)

    def records(self) -> Iterator[Record]:
        for store in self.stores:
            yield from store.records()

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def describe(self) -> dict[str, Any]:
        """What `FeatureStore.describe` tells of one, of all of them together."""
        each = [store.describe() for store in self.stores]
        images, regions = len(self), sum(about["regions"] for about in each)
        counts = [about["regions per image"] for about in each if about["images"]]
        return {
            "path": str(self.path),
            "files": len(each),
            "images": images,
            "regions": regions,
            "regions per image": [min(c[0] for c in counts), round(regions / images, 1), max(c[2] for c in counts)]
            if counts
            else [0, 0.0, 0],
            "images without regions": sum(about["images without regions"] for about in each),
            "width": self.width,
            "dtype": _one_or_all(about["dtype"] for about in each),
            "compression": _one_or_all(about["compression"] for about in each),
            "holds": [name for name in each[0]["holds"] if all(name in about["holds"] for about in each)],
            **({"classes": len(self.class_names)} if self.class_names else {}),
            "bytes": sum(about["bytes"] for about in each),
            "fingerprint": self.fingerprint,
        }

    def _belong_together(self) -> None:
        first = self.stores[0]
        for store in self.stores[1:]:
            if store.fingerprint != first.fingerprint:
                raise DataError(
                    f"{store.path}: made by something else than {first.path} "
                    f"({difference(store.fingerprint, first.fingerprint)}); features read together must be made alike"
                )
            if store.width != first.width:
                raise DataError(
                    f"{store.path}: features are {store.width} wide, those of {first.path} are {first.width}"
                )
            if store.class_names and store.class_names != self.class_names:
                raise DataError(
                    f"{store.path}: its regions are of other classes than those of files before it; features read "
                    "together must be made alike"
                )

    def _index(self) -> None:
        """All keys sorted, and which file each is in."""
        import numpy as np

        keys = np.concatenate([store.encoded_keys for store in self.stores])
        files = np.repeat(np.arange(len(self.stores), dtype=np.int32), [len(store) for store in self.stores])
        order = np.argsort(keys, kind="stable")
        self._keys, self._files = keys[order], files[order]
        (twice,) = np.nonzero(self._keys[1:] == self._keys[:-1])
        if len(twice):
            one, other = (self.stores[self._files[place]].path for place in (twice[0], twice[0] + 1))
            raise DataError(
                f"{other}: image '{self._keys[twice[0]].decode()}' is in {one} too ({len(twice)} images are in two "
                "files); each must be in one"
            )

    def _of(self, key: str) -> FeatureStore | None:
        import numpy as np

        wanted = np.bytes_(key.encode())
        place = int(np.searchsorted(self._keys, wanted))
        return self.stores[self._files[place]] if place < len(self._keys) and self._keys[place] == wanted else None


def _one_or_all(values: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(values))
