"""Checks an HDF5 file in a separate process with limited memory and time: `python hdf5_check.py PATH SECONDS NAME...`.

On a damaged file, libhdf5 may loop for ever, use up all memory or crash, inside a call that Python cannot interrupt. So
this process walks through an untrusted file before the file is read (see `untrusted_hdf5.open_hdf5`). The walk touches
everything that reading the names touches. It exits with 0 after ordinary errors, because the reader reports those
better. The system kills the process after SECONDS of processor time. If the file takes too much memory, the process
exits with a message."""

import contextlib
import resource
import sys
from pathlib import Path

import h5py

MEMORY = 1 << 30  # bytes of addresses beyond those of Python, numpy and h5py; a walk needs next to nothing
TOO_MUCH = 1 << 29  # bytes in use
STATUS = Path("/proc/self/status")
SMALL = (
    16 << 20
)  # bytes up to which numbers are read through their filters; of larger datasets, only the chunk index is read


def main(path: str, seconds: str, *names: str) -> None:
    _limit_resource(resource.RLIMIT_CORE, 0)
    if used := _memory_used("VmSize"):
        _limit_resource(resource.RLIMIT_AS, used + MEMORY)
    _limit_resource(resource.RLIMIT_CPU, int(seconds))
    with contextlib.suppress(Exception), h5py.File(path, "r", locking="best-effort") as file:
        for look in (_read_attribute, _count_chunks):
            for name in names:
                with contextlib.suppress(Exception):
                    look(file, name)
                _stop_if_too_much()
    _stop_if_too_much()


def _read_attribute(file: h5py.File, name: str) -> None:
    file.attrs.get(name)


def _count_chunks(file: h5py.File, name: str) -> None:
    """Counting the chunks visits their whole index, which every later read uses."""
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return
    dataset = file[name]
    if dataset.is_virtual or dataset.external or dataset.dtype.hasobject:
        return
    if dataset.id.get_storage_size() and dataset.nbytes <= SMALL:
        dataset[()]


def _limit_resource(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with contextlib.suppress(ValueError, OSError):  # some systems lack some limits
        resource.setrlimit(what, (most, hard))


def _stop_if_too_much() -> None:
    if _memory_used("VmHWM") > TOO_MUCH:
        sys.exit("libhdf5 used too much memory while reading the file")


def _memory_used(kind: str) -> int:
    """Bytes of this process: addresses (VmSize) or the peak in use (VmHWM); 0 if the system does not report them.
    (getrusage would include the memory of the parent process.)"""
    size = STATUS.read_text().partition(f"{kind}:")[2] if STATUS.exists() else ""
    return int(size.split()[0]) << 10 if size else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
