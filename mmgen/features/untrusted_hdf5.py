"""Open untrusted HDF5 files, checked in a separate process first: only plain local data, of a plausible size.

libhdf5 must not hang, and the data must be in the file itself, without Python objects, and not larger than the size
of the file allows."""

from __future__ import annotations

import functools
import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError, RunError

if TYPE_CHECKING:
    import h5py

MOST_BYTES = 1 << 30  # limit of an image's features, of an index, and of a chunk
MOST_COMPRESSION = 1100  # deflate reaches at most a ratio of 1032
SECONDS = 10  # processor time of a walk through a file; large files have more chunks and get more
SECONDS_PER_GIB = 5
SIGNATURE = b"\x89HDF\r\n\x1a\n"
WALK = Path(__file__).with_name("hdf5_check.py")


def open_hdf5(path: Path, names: Sequence[str], seal: str = "") -> h5py.File:
    """Open a file for reading, after another process has walked through the attributes and datasets of these names (a
    tenth of a second, once per file). `seal`: a text at the beginning of files in which a checksum covers everything;
    such files are not walked through. Raises DataError for a file on which libhdf5 loops, crashes or uses too much
    memory."""
    import h5py

    if not (seal and _has_checksums(path, seal.encode())):
        status = path.stat()
        if problem := _walk_in_process(path.absolute(), tuple(names), status.st_size, status.st_mtime_ns):
            raise DataError(
                f"{path}: not opened: {problem}; the file is damaged or malicious; download or create it again"
            )
    return h5py.File(path, "r", locking="best-effort")


def _has_checksums(path: Path, seal: bytes) -> bool:
    """Whether the superblock has a checksum (from version 2 on), and a checksum covers the text: it is not in a heap
    (GCOL)."""
    with path.open("rb") as file:
        before, match, _ = file.read(4096).partition(seal)
    return bool(match) and before.startswith(SIGNATURE) and before[8] >= 2 and b"GCOL" not in before


@functools.cache
def _walk_in_process(path: Path, names: tuple[str, ...], size: int, changed: int) -> str:
    """Why a walk through the file failed; "" if it succeeded. Raises RunError if the process cannot be started.
    (`changed` is for the cache: a changed file is walked through again.)"""
    seconds = SECONDS + SECONDS_PER_GIB * (size >> 30)
    # one thread, since each thread takes addresses, which are limited
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-P", str(WALK), str(path), str(seconds), *names]
    try:
        process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment)
    except OSError as error:
        raise _start_error(path, str(error)) from None
    if process.returncode == -signal.SIGXCPU:
        return f"libhdf5 did not finish reading the file in {seconds} s of CPU time"
    if process.returncode < 0:
        return f"libhdf5 crashed while reading the file ({signal.strsignal(-process.returncode)})"
    message = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    if process.returncode and not message.startswith("libhdf5"):
        raise _start_error(path, message)
    return message if process.returncode else ""


def _start_error(path: Path, reason: str) -> RunError:
    return RunError(
        f"{path}: cannot start the process that checks the file before it is opened: "
        f"{reason or 'no error message'}; make sure that `{sys.executable} -c 'import h5py'` works"
    )


def local_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """A dataset that is stored in the file itself, with numbers or strings. Raises ValueError if the dataset is
    missing, is a link, is external or virtual, contains objects, or claims far more memory than the file has bytes (the
    dataset or one of its chunks)."""
    import h5py

    link = file.get(name, getlink=True)
    if link is None:
        raise ValueError(f"'{name}' is missing")
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"'{name}' is a link, and links are not followed")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset) or dataset.is_virtual or dataset.external:
        raise ValueError(f"'{name}' is not stored in the file itself")
    if dataset.shape is None or dataset.dtype.hasobject:
        raise ValueError(f"'{name}' contains {'nothing' if dataset.shape is None else 'objects'}, not numbers")
    stored = dataset.id.get_storage_size()
    if dataset.nbytes > stored * MOST_COMPRESSION:
        raise ValueError(f"'{name}' claims {dataset.nbytes} bytes, but only {stored} are stored")
    if dataset.chunks and math.prod(dataset.chunks) * dataset.dtype.itemsize > MOST_BYTES:
        raise ValueError(f"'{name}' has chunks of {dataset.chunks}, which are too large to unpack")
    return dataset
