"""The classes of regions in the file of a feature store: the datasets, and checks of their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .classes import MAX_CLASSES
from .untrusted_hdf5 import local_dataset

if TYPE_CHECKING:
    import h5py

CLASSES = {"class_ids": "i", "class_probabilities": "f"}  # kind of number; k per region
MAX_NAME_BYTES = 1 << 10


def read_class_names(file: h5py.File) -> tuple[tuple[str, ...], int]:
    """Names of all classes, and k, the number of classes per region; () and 0 if the file has no classes. Raises
    ValueError for inconsistent datasets, before any memory is allocated."""
    if not any(name in file for name in (*CLASSES, "class_names")):
        return (), 0
    rows, names = len(file["features"]), local_dataset(file, "class_names")
    if names.dtype.kind != "S" or names.ndim != 1 or len(names) > MAX_CLASSES or names.dtype.itemsize > MAX_NAME_BYTES:
        raise ValueError(
            f"'class_names' is {names.dtype} of shape {names.shape}; expected at most {MAX_CLASSES} strings of at most "
            f"{MAX_NAME_BYTES} bytes"
        )
    for name, kind in CLASSES.items():
        dataset = local_dataset(file, name)
        if dataset.dtype.kind != kind or dataset.ndim != 2 or len(dataset) != rows:
            raise ValueError(f"'{name}' is {dataset.dtype} of shape {dataset.shape}, but the store has {rows} regions")
        if dataset.shape != file["class_ids"].shape or not 0 < dataset.shape[1] <= len(names):
            raise ValueError(f"'{name}' has shape {dataset.shape}, but the store has {len(names)} classes")
    return tuple(name.decode() for name in names[:]), file["class_ids"].shape[1]
