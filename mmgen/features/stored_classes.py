"""The classes of regions in a feature store's file: what must be there for them to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .untrusted_hdf5 import own_dataset

if TYPE_CHECKING:
    import h5py

CLASSES = {"class_ids": "i", "class_probabilities": "f"}  # kind of number; of every region there are k
MOST = 1 << 16  # classes there can be: what is predicted of a region is as wide
LONGEST = 1 << 10  # bytes of a name


def declared(file: h5py.File) -> tuple[tuple[str, ...], int]:
    """Names of all classes, and how many of them a region has; () and 0 where the file has no classes. Raises
    ValueError for what does not fit together, before any memory is taken."""
    if not any(name in file for name in (*CLASSES, "class_names")):
        return (), 0
    rows, names = len(file["features"]), own_dataset(file, "class_names")
    if names.dtype.kind != "S" or names.ndim != 1 or len(names) > MOST or names.dtype.itemsize > LONGEST:
        raise ValueError(f"'class_names' is {names.dtype} of shape {names.shape}; there are {MOST} classes at most")
    for name, kind in CLASSES.items():
        dataset = own_dataset(file, name)
        if dataset.dtype.kind != kind or dataset.ndim != 2 or len(dataset) != rows:
            raise ValueError(f"'{name}' is {dataset.dtype} of shape {dataset.shape}, and there are {rows} regions")
        if dataset.shape != file["class_ids"].shape or not 0 < dataset.shape[1] <= len(names):
            raise ValueError(f"'{name}' is of shape {dataset.shape}, and there are {len(names)} classes")
    return tuple(name.decode() for name in names[:]), file["class_ids"].shape[1]
