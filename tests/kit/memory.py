"""A process with little memory, and refusals that are none of it."""

import contextlib
import re
import resource
from collections.abc import Iterator
from pathlib import Path

STATUS = Path("/proc/self/statm")


@contextlib.contextmanager
def confined(spare: int) -> Iterator[None]:
    """The process can take so many bytes of memory beside what it has, where the system says how much that is."""
    if not STATUS.exists():
        yield
        return
    taken = int(STATUS.read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + spare, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


# of an address; and of what a damaged file claims, which it asks for but does not fill
HDF5_SAYS = "past end of allocation|memory allocation failed for on disk image buffer"


def check_memory(error: BaseException | None, place: Path) -> None:
    """A refusal is one of mmgen's, and no error of the memory that `confined` left, in other words."""
    while error is not None:
        text = re.sub(HDF5_SAYS, "", f"{error!r}".replace(str(place), ""))
        assert not re.search(r"MemoryError|(?i:alloc)", text), text
        error = error.__cause__ or error.__context__
