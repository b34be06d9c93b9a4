"""Files at a place: paths, patterns and ranges on this machine, URLs through fsspec; opens them, says their sizes."""

from __future__ import annotations

import importlib.util
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from mmgen.errors import DataError, install_extra, regular

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
MOST_FILES = 1_000_000  # of a range


def is_url(place: str) -> bool:
    return "://" in place


def files_of(place: str) -> list[str]:
    """The files that a place names, in order. Raises DataError if there are none."""
    files = [file for name in ranges(place) for file in _matches(name)]
    if not files:
        raise DataError(f"{place}: no such file")
    return files


def ranges(place: str) -> Iterator[str]:
    """The names of a place with ranges: "a-{08..10}.tar" -> "a-08.tar", "a-09.tar", "a-10.tar"."""
    parts = RANGE.split(place)
    texts, numbers = parts[::3], list(zip(parts[1::3], parts[2::3], strict=True))
    counts = [range(int(first), int(last) + 1) for first, last in numbers]
    if any(len(count) > MOST_FILES for count in counts):
        raise DataError(f"{place}: a range of more than {MOST_FILES:,} files")
    for chosen in itertools.product(*counts):
        filled = [str(number).zfill(len(first)) for number, (first, _) in zip(chosen, numbers, strict=True)]
        yield "".join(itertools.chain.from_iterable(itertools.zip_longest(texts, filled, fillvalue="")))


def _matches(name: str) -> list[str]:
    if is_url(name):
        files, path = file_system(name)
        with remote(name):
            matches = sorted(files.glob(path)) if any(letter in path for letter in "*?[") else [path]
        return [files.unstrip_protocol(match) for match in matches]
    local = Path(name)
    if local.exists() or not any(letter in local.name for letter in "*?["):
        return [name]
    return sorted(str(match) for match in local.parent.glob(local.name))


def file_system(url: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the path there. Raises DataError."""
    if importlib.util.find_spec("fsspec") is None:
        raise DataError(f"{url}: needs fsspec; {install_extra('streams')}")
    import fsspec

    with remote(url):
        return fsspec.core.url_to_fs(url)


@contextmanager
def remote(url: str) -> Iterator[None]:
    """Errors of an object store, or of the package that it needs, in one line."""
    try:
        yield
    except DataError:
        raise
    except ImportError:
        kind = url.partition("://")[0]
        raise DataError(
            f"{url}: fsspec needs another package for {kind}://, such as s3fs for s3:// or gcsfs for gs://; install it"
        ) from None
    except ValueError:
        raise DataError(f"{url}: fsspec knows no such kind of URL") from None
    except Exception as error:  # file systems raise their own errors
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise DataError(f"{url}: cannot be read: {reason}") from None


def open_file(place: str) -> BinaryIO:
    """An open file, for seeking. Raises DataError."""
    if is_url(place):
        files, path = file_system(place)
        with remote(place):
            return cast(BinaryIO, files.open(path, "rb"))
    try:
        return regular(Path(place)).open("rb")
    except OSError as error:
        raise DataError(f"{place}: cannot be read: {error.strerror}") from None


def size_of(place: str) -> int:
    """Bytes of a file. Raises DataError."""
    if is_url(place):
        files, path = file_system(place)
        with remote(place):
            return int(files.size(path))
    try:
        return Path(place).stat().st_size
    except OSError as error:
        raise DataError(f"{place}: cannot be read: {error.strerror}") from None
