"""Valid HDF5 files with wrong contents: other types and shapes, impossible sizes, links out of the file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np

PARTS, CLASSES = ("keys", "ends", "features", "boxes", "scores"), ("class_ids", "class_probabilities")
KINDS = ("f2", "f4", "f8", "i4", "i8", "u1", "S3", "?", "c8", "V4")


def spoil_store(draw: Random, path: Path) -> None:
    with (
        h5py.File(path, "r+") as file,
        contextlib.suppress(TypeError, ValueError, OSError, KeyError, RuntimeError, MemoryError, OverflowError),
    ):
        # (a second change may not be to be had after the first)
        for _ in range(draw.choice((1, 1, 2))):
            what = draw.random()
            if what < 0.25:
                _attribute(draw, file)
            elif what < 0.5:
                _numbers(draw, file)
            else:
                _dataset(draw, file, (*PARTS, "labels", "label_names", *CLASSES, "class_names"))


def spoil_lxmert(draw: Random, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        if "pos_boxes" in file and draw.random() < 0.4:
            ranges = file["pos_boxes"]
            ranges[draw.randrange(len(ranges)), draw.randrange(2)] = draw.choice((-1, 0, 99, 2**62, 3))
        elif draw.random() < 0.3:
            values = file["image_features"]
            values[draw.randrange(len(values))] = draw.choice((np.nan, np.inf, 1e30))
        else:
            _dataset(draw, file, ("image_features", "spatial_features", "pos_boxes"))


def _attribute(draw: Random, file: h5py.File) -> None:
    name = draw.choice(("format", "version", "fingerprint"))
    if draw.random() < 0.2:
        del file.attrs[name]
        return
    odd: tuple[Any, ...] = (
        0,
        2,
        -1,
        "",
        "x",
        b"\xff",
        "[]",
        "null",
        "3",
        '{"a": NaN}',
        '{"extractor": [1]}',
        '{"extractor": {"x": 1}, "model": "\\u001b[2J"}',
        "{" * 3000,
        np.zeros((2, 2)),
        h5py.Empty("f4"),
        np.array(["a", "b"], dtype="S1"),
        1.0,
        True,
        "[" * 5000,
    )
    file.attrs[name] = draw.choice(odd)


def _numbers(draw: Random, file: h5py.File) -> None:
    """Impossible values of the right type."""
    name = draw.choice([name for name in (*PARTS, "labels", *CLASSES) if name in file])
    values = file[name]
    place = draw.randrange(len(values))
    if isinstance(values, h5py.Dataset) and values.dtype.hasobject:
        return  # an earlier change made it one of texts or references; h5py crashes when it writes a number there
    if name == "keys":
        values[place] = draw.choice((b"", b"25", b"\xff\xfe", b"a\x1bb", values[0]))
    elif name in ("ends", "labels", "class_ids"):
        values[place] = draw.choice((-1, 0, 1, 5, 10**6, 2**31 - 1))
    else:
        values[place] = draw.choice((np.nan, np.inf, -np.inf, -1.0, 6e4, 0.0))


def _dataset(draw: Random, file: h5py.File, names: tuple[str, ...]) -> None:
    """Remove one dataset, or replace it."""
    name = draw.choice(names)
    old = file[name][:] if name in file else np.zeros((10, 4), "f4")
    if name in file:
        del file[name]
    shape = list(old.shape)
    make = draw.choice(
        (
            lambda: None,
            lambda: file.create_group(name),
            lambda: file.create_dataset(name, data=old[:-1]),
            lambda: file.create_dataset(name, data=np.concatenate([old, old])),
            lambda: file.create_dataset(name, data=old[None]),
            lambda: file.create_dataset(name, data=old.reshape(-1)),
            lambda: file.create_dataset(name, data=_as(old, draw.choice(KINDS))),
            lambda: file.create_dataset(name, (10**12, *shape[1:]), old.dtype, chunks=(1024, *shape[1:])),
            lambda: file.create_dataset(name, (*shape[:-1], 10**11), old.dtype, chunks=(*[1] * (len(shape) - 1), 1024)),
            lambda: file.create_dataset(
                name,
                (3 * 10**8, *shape[1:]),
                old.dtype,
                chunks=(1 << 16, *shape[1:]),
                compression="gzip",
                fillvalue=old.flat[0],
            ),
            lambda: file.create_dataset(name, data=np.array([b"a", b"bc"], object), dtype=h5py.string_dtype()),
            lambda: file.create_dataset(name, (2,), dtype=h5py.vlen_dtype(np.float32)),
            lambda: file.create_dataset(name, data=h5py.Empty("f4")),
            lambda: file.create_dataset(name, data=3.0),
            lambda: file.create_dataset(name, (0, *shape[1:]), old.dtype),
            lambda: file.create_dataset(name, data=old, dtype=old.dtype, compression="lzf"),
            lambda: file.create_dataset(name, (2,), dtype=h5py.ref_dtype),
            lambda: file.__setitem__(name, h5py.ExternalLink("/etc/passwd", "/x")),
            lambda: file.__setitem__(name, h5py.ExternalLink("other.h5", f"/{name}")),
            lambda: file.__setitem__(name, h5py.SoftLink("/features")),
            lambda: file.__setitem__(name, h5py.SoftLink(f"/{name}")),
            lambda: file.create_dataset(name, old.shape, old.dtype, external=[("/etc/passwd", 0, 1 << 20)]),
            lambda: file.create_virtual_dataset(name, _virtual(old)),
            lambda: file.create_dataset(name, data=np.zeros(4, [("a", "f4"), ("b", "i4")])),
        )
    )
    make()


def _as(values: np.ndarray, kind: str) -> np.ndarray:
    if kind == "V4":
        return np.zeros(values.shape, "V4")
    try:
        return values.astype(kind)
    except (TypeError, ValueError):
        return np.zeros(values.shape, kind)


def _virtual(old: np.ndarray) -> h5py.VirtualLayout:
    layout = h5py.VirtualLayout(old.shape, old.dtype)
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", old.shape)
    return layout
