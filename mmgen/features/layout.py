"""The layout of a feature store in its file: chunks and compression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..parts import Record


SAMPLE = 32  # records on which compression is tried
WORTH_IT = 0.8  # compress only if the result is smaller than this share, since compressed files are slower to read
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Layout:
    """How features are stored in the file."""

    width: int
    dtype: str
    rows: int  # per chunk
    compression: Mapping[str, Any]

    @classmethod
    def choose(cls, first: list[Record], width: int, dtype: str) -> Layout:
        """Choose a layout from the first records: a chunk is as large as an image, and compression is used if it saves
        enough."""
        import zlib

        import numpy as np

        typical = int(np.median([len(record.features) for record in first]))
        rows = max(1, min(typical, CHUNK_BYTES // (width * np.dtype(dtype).itemsize)))
        sample = np.concatenate([record.features for record in first])
        # as the filters of HDF5: shuffle bytes of equal significance together, then deflate
        shuffled = np.ascontiguousarray(sample).view(np.uint8).reshape(-1, sample.dtype.itemsize).T.tobytes()
        compress = len(zlib.compress(shuffled, 1)) < WORTH_IT * max(1, len(shuffled))
        return cls(
            width, dtype, rows, {"compression": "gzip", "compression_opts": 1, "shuffle": True} if compress else {}
        )
