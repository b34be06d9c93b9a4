"""Writes the rows of a feature store into its HDF5 file, buffered and in whole chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .layout import Layout
from .store import PER_REGION
from .stored_classes import CLASSES

if TYPE_CHECKING:
    import h5py
    import numpy as np

    from ..parts import Record

BUFFER_BYTES = 16 << 20


class RowWriter:
    """Appends records to the datasets of a new file, buffered and in whole chunks."""

    def __init__(self, file: h5py.File, layout: Layout, classes: tuple[tuple[str, ...], int] | None = None) -> None:
        """`classes`: names of the regions' classes, and the number of classes per region."""
        self.file, self.layout, self.classes = file, layout, classes
        self.keys: list[bytes] = []
        self.ends: list[int] = []
        self.name_ids: dict[str, int] = {}
        self.buffer: list[dict[str, np.ndarray]] = []
        self.buffered_rows = self.written = 0
        self.known: set[str] = set()
        self._create_dataset("features", (layout.width,), layout.dtype, rows=layout.rows, **layout.compression)
        columns = dict(PER_REGION)
        if classes is not None:
            columns |= {name: (kind, (classes[1],)) for name, kind in CLASSES.items()}
        for name, (kind, row) in columns.items():
            self._create_dataset(name, row, f"{kind}4", rows=1024, compression="gzip", compression_opts=1, shuffle=True)

    def add(self, record: Record) -> None:
        import numpy as np

        from .classes import Classes

        count = len(record.features)
        name_ids = (
            [self.name_ids.setdefault(name, len(self.name_ids)) for name in record.region_names]
            if record.region_names is not None
            else None
        )
        columns = {"boxes": record.boxes, "scores": record.scores, "labels": name_ids}
        self.known |= {name for name in PER_REGION if count and columns[name] is not None}
        arrays = {"features": record.features}
        for name, (kind, row) in PER_REGION.items():
            unknown = np.full((count, *row), np.nan if kind == "f" else -1, f"{kind}4")
            arrays[name] = (
                unknown if columns[name] is None else np.asarray(columns[name], f"{kind}4").reshape(count, *row)
            )
        if self.classes is not None:
            classes = record.classes or Classes.unknown(*self.classes, count)
            arrays |= {"class_ids": classes.ids, "class_probabilities": classes.probabilities}
        self.buffer.append(arrays)
        self.buffered_rows += count
        self.keys.append(record.key.encode())
        self.ends.append((self.ends[-1] if self.ends else 0) + count)
        if self.buffered_rows * self.layout.width * 4 > BUFFER_BYTES:
            self._write_rows(self.buffered_rows - self.buffered_rows % self.layout.rows)

    def close(self) -> None:
        import h5py
        import numpy as np

        self._write_rows(self.buffered_rows)
        for name in PER_REGION:
            if name not in self.known:
                del self.file[name]
        texts = {"keys": self.keys}
        if "labels" in self.known:
            texts["label_names"] = [name.encode() for name in self.name_ids]
        if self.classes is not None:
            texts["class_names"] = [name.encode() for name in self.classes[0]]
        for name, values in texts.items():
            kind = h5py.string_dtype("utf-8", max(1, *map(len, values)) if len(values) > 1 else max(1, len(values[0])))
            self.file.create_dataset(
                name, data=np.array(values, dtype=kind), dtype=kind, compression="gzip", shuffle=False, fletcher32=True
            )
        self.file.create_dataset(
            "ends", data=np.array(self.ends, np.int64), compression="gzip", shuffle=True, fletcher32=True
        )

    def _create_dataset(self, name: str, row: tuple[int, ...], dtype: str, rows: int, **filters: Any) -> None:
        self.file.create_dataset(
            name, (0, *row), dtype, maxshape=(None, *row), chunks=(rows, *row), fletcher32=True, **filters
        )

    def _write_rows(self, rows: int) -> None:
        """Write the first `rows` buffered rows; the rest stays in the buffer."""
        import numpy as np

        if not self.buffered_rows:
            return
        rest = {}
        for name in self.buffer[0]:
            values = np.concatenate([arrays[name] for arrays in self.buffer])
            self.file[name].resize(self.written + rows, axis=0)
            self.file[name][self.written :] = values[:rows]
            rest[name] = values[rows:].copy()
        self.buffer, self.buffered_rows, self.written = [rest], len(rest["features"]), self.written + rows
