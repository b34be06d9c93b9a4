"""Walk through an HDF5 file in a process of its own: `python hdf5_check.py PATH SECONDS NAME...`.

libhdf5 may loop for ever over a damaged file, take memory without end or crash, inside a call that Python cannot
interrupt. So an untrusted file is walked through here before it is read (see `untrusted_hdf5.opened`). The walk touches
everything that reading the names touches. It exits with 0 for ordinary errors, because the reader reports those better.
The system kills it after so many seconds of computing. It ends with a line that says so when the file takes memory
without end."""

import contextlib
import resource
import sys
from pathlib import Path

import h5py

MEMORY = (
    1 << 30
)  # bytes of addresses that it may take beyond those of Python, numpy and h5py; walking takes next to nothing
TOO_MUCH = 1 << 29  # bytes in use
STATUS = Path("/proc/self/status")
SMALL = 16 << 20  # bytes up to which numbers are read, through their filters; of what is larger, where they lie


def main(path: str, seconds: str, *names: str) -> None:
    _limit(resource.RLIMIT_CORE, 0)
    if used := _memory("VmSize"):
        _limit(resource.RLIMIT_AS, used + MEMORY)
    _limit(resource.RLIMIT_CPU, int(seconds))
    with contextlib.suppress(Exception), h5py.File(path, "r", locking="best-effort") as file:
        for look in (_attribute, _dataset):
            for name in names:
                with contextlib.suppress(Exception):
                    look(file, name)
                _stop_if_too_much()
    _stop_if_too_much()


def _attribute(file: h5py.File, name: str) -> None:
    file.attrs.get(name)


def _dataset(file: h5py.File, name: str) -> None:
    """Counting the chunks visits the whole of their index, in which every later read finds its way."""
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return
    dataset = file[name]
    if dataset.is_virtual or dataset.external or dataset.dtype.hasobject:
        return
    if dataset.id.get_storage_size() and dataset.nbytes <= SMALL:
        dataset[()]


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with contextlib.suppress(ValueError, OSError):  # not every system has every limit
        resource.setrlimit(what, (most, hard))


def _stop_if_too_much() -> None:
    if _memory("VmHWM") > TOO_MUCH:
        sys.exit("libhdf5 takes memory without end over it")


def _memory(kind: str) -> int:
    """Bytes of this process: addresses (VmSize), or at most in use so far (VmHWM); 0 where the system does not say.
    (What getrusage says begins with the memory of the process that started this one.)"""
    size = STATUS.read_text().partition(f"{kind}:")[2] if STATUS.exists() else ""
    return int(size.split()[0]) << 10 if size else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
