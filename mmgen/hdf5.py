"""HDF5 files of strangers: what is taken out of one lies in it, holds no objects, and is no larger than it can be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import h5py

MOST_BYTES = 1 << 30  # no image's features, no index, and nothing that is unpacked at once is larger
MOST_COMPRESSION = 1100  # deflate makes nothing smaller than to a 1032nd


def own_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """A dataset of this very file, with numbers or texts that lie in it. Raises ValueError when it is missing; when a link,
    external storage or a virtual dataset would lead out of the file, since none of these is followed; when it holds
    objects; and when it, or what is unpacked at once, claims far more memory than the file has bytes."""
    import h5py

    link = file.get(name, getlink=True)
    if link is None:
        raise ValueError(f"'{name}' is missing")
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"'{name}' is a link, which is not followed")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset) or dataset.is_virtual or dataset.external:
        raise ValueError(f"'{name}' is not stored in the file itself")
    if dataset.shape is None or dataset.dtype.hasobject:
        raise ValueError(f"'{name}' holds {'nothing' if dataset.shape is None else 'objects'}, not numbers")
    stored = dataset.id.get_storage_size()
    if dataset.nbytes > stored * MOST_COMPRESSION:
        raise ValueError(f"'{name}' claims {dataset.nbytes} bytes and holds {stored}")
    if dataset.chunks and math.prod(dataset.chunks) * dataset.dtype.itemsize > MOST_BYTES:
        raise ValueError(f"'{name}' lies in chunks of {dataset.chunks}, too large to be unpacked")
    return dataset
