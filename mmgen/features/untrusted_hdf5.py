"""Read untrusted HDF5 files: libhdf5 must not hang on one, and what is read lies in the file itself, holds no Python
objects, and is no larger than the file allows."""

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

MOST_BYTES = 1 << 30  # no image's features, no index, and nothing that is unpacked at once is larger
MOST_COMPRESSION = 1100  # deflate makes nothing smaller than to a 1032nd
SECONDS = 10  # of computing that a walk through a file may take, and more for a large one, which has more chunks
SECONDS_A_GIB = 5
SIGNATURE = b"\x89HDF\r\n\x1a\n"
WALK = Path(__file__).with_name("hdf5_check.py")


def opened(path: Path, names: Sequence[str], seal: str = "") -> h5py.File:
    """A file to read, whose attributes and datasets of these names another process has walked through before (a tenth
    of a second, once a file). `seal`: a text that only files with checksums over everything begin with; they are not
    walked through. Raises DataError for a file over which libhdf5 loops, crashes or takes memory without end."""
    import h5py

    if not (seal and _sealed(path, seal.encode())):
        about = path.stat()
        if trouble := _walk(path.absolute(), tuple(names), about.st_size, about.st_mtime_ns):
            raise DataError(
                f"{path}: not opened: {trouble}; the file is damaged, or made to do harm: get it again, or make it "
                "again"
            )
    return h5py.File(path, "r", locking="best-effort")


def _sealed(path: Path, seal: bytes) -> bool:
    """Whether a superblock has a checksum (from version 2 on), and the text lies where one covers it: not in a heap
    (GCOL)."""
    with path.open("rb") as file:
        before, found, _ = file.read(4096).partition(seal)
    return bool(found) and before.startswith(SIGNATURE) and before[8] >= 2 and b"GCOL" not in before


@functools.cache
def _walk(path: Path, names: tuple[str, ...], size: int, changed: int) -> str:
    """Why a walk through the file did not come back; "" when it did. Raises RunError where none can be begun.
    (`changed` is for the cache: another file is walked anew.)"""
    seconds = SECONDS + SECONDS_A_GIB * (size >> 30)
    # one thread: each would take addresses, of which the walk has so many only
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-P", str(WALK), str(path), str(seconds), *names]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment)
    except OSError as error:
        raise _not_begun(path, str(error)) from None
    if ended.returncode == -signal.SIGXCPU:
        return f"libhdf5 came to no end with it in {seconds} s of computing"
    if ended.returncode < 0:
        return f"libhdf5 crashed over it ({signal.strsignal(-ended.returncode)})"
    said = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    if ended.returncode and not said.startswith("libhdf5"):
        raise _not_begun(path, said)
    return said if ended.returncode else ""


def _not_begun(path: Path, why: str) -> RunError:
    return RunError(
        f"{path}: is walked through by a process of its own before it is opened, and none can be begun: "
        f"{why or 'it says nothing'}; see that `{sys.executable} -c 'import h5py'` works"
    )


def own_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """A dataset of this very file, with numbers or texts that lie in it. Raises ValueError when it is missing; when a
    link, external storage or a virtual dataset would lead out of the file, since none of these is followed; when it
    holds objects; and when it, or what is unpacked at once, claims far more memory than the file has bytes."""
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
