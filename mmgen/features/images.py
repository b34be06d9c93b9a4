"""Untrusted image files: list those of a folder, by key; open one as RGB."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from PIL import Image, UnidentifiedImageError

from ..errors import DataError
from ..files import foreign, image_key
from .pixels import UnknownPixels, as_rgb

AVIF = find_spec("PIL._avif") is not None  # whether this Pillow was built with it
SUFFIXES = (*((".avif",) if AVIF else ()), ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
FORMATS = (
    "BMP",
    "GIF",
    "JPEG",
    "PNG",
    "TIFF",
    "WEBP",
    *(("AVIF",) if AVIF else ()),
)  # one of the rest runs Ghostscript
RAW = (".arw", ".cr2", ".cr3", ".dng", ".nef")  # of cameras
NOT_READ = (*RAW, *(() if AVIF else (".avif",)), ".heic", ".heif", ".jp2", ".jxl")  # photos that are not supported
LISTED = 100_000  # names of files in memory at a time
MOST_PIXELS = 89_478_485  # of an image that is opened, as Pillow says; phones have cameras of 48, 50 and 64 million
MANY_PIXELS = (1 << 20, 1 << 20)  # the size that is reported for an image with too many pixels to be opened
TOO_LARGE = (Image.DecompressionBombError, Image.DecompressionBombWarning)
SUBFILE, DNG = 254, 50706  # tags of TIFF
log = logging.getLogger("mmgen")


def image_files(folder: Path) -> Iterator[Path]:
    """Image files of a folder and its subfolders, recognised and sorted by name, as they are listed: of a folder with
    more than LISTED names, every LISTED names are sorted. Logs how many photos of unsupported formats are skipped."""
    suffixes, count, first = set[str](), 0, ""
    for path in _files_below(folder):
        suffix = path.suffix.lower()
        if suffix in SUFFIXES:
            yield path
        elif suffix in NOT_READ:
            suffixes.add(suffix)
            count, first = count + 1, first or str(path.relative_to(folder))
    if count:
        kinds = " and ".join(sorted(suffixes))
        photos = f"{count} photos, such as {first}" if count > 1 else first
        log.warning(f"{folder}: skipped {photos}: {kinds} files are not supported; convert them to JPEG or PNG")


def _files_below(folder: Path) -> Iterator[Path]:
    """All files of a folder and its subfolders, which come after them."""
    subfolders = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:  # as os.walk, which leaves out such folders
        while chunk := list(itertools.islice(entries, LISTED)):
            is_folder = {entry.name: entry.is_dir() for entry in chunk}
            subfolders += [entry.name for entry in chunk if is_folder[entry.name] and not entry.is_symlink()]
            yield from (folder / name for name in sorted(is_folder) if not is_folder[name])
    for name in sorted(subfolders):
        yield from _files_below(folder / name)


def images_by_key(folder: Path) -> dict[str, Path]:
    """Image files of a folder and its subfolders by `files.image_key`. Raises DataError for a duplicate key."""
    paths: dict[str, Path] = {}
    for path in image_files(folder):
        key = image_key(path.name)
        if paths.setdefault(key, path) != path:
            raise duplicate_key(folder, key, path)
    return paths


def duplicate_key(folder: Path, key: str, path: Path) -> DataError:
    """The error about a second image of a folder with the same key."""
    first = next(first for first in image_files(folder) if image_key(first.name) == key)
    return DataError(
        f"{folder}: {first.relative_to(folder)} and {path.relative_to(folder)} have the same key '{key}'; rename one "
        "of them"
    )


def open_image(source: Path | BinaryIO, name: str = "") -> Image.Image:
    """Load an image as RGB (see `pixels.as_rgb`), of several frames the first. The suffix of the file does not matter.
    `name`: the name of an open file, for errors. Raises DataError for a file in none of
    FORMATS, a truncated file, a pipe, an image with so many pixels that it would fill the memory, or pixels whose range
    is not known."""
    path = name or source
    try:
        with _opened(source) as image:
            if image.format == "TIFF":
                named_raw = isinstance(source, Path) and source.suffix.lower() in RAW
                if named_raw or DNG in image.tag_v2 or image.tag_v2.get(SUBFILE) == 1:
                    raise UnknownPixels("is a camera's raw file, with a preview; convert it to JPEG or PNG")
            return as_rgb(image)
    except UnidentifiedImageError:
        raise DataError(f"{path}: {_not_an_image(source)}") from None
    except TOO_LARGE as error:
        pixels = int("".join(re.findall(r"\d+", str(error))[:1]) or 0)
        raise DataError(
            f"{path}: has {pixels:,} pixels, but at most {MOST_PIXELS:,} are read; make it smaller"
        ) from None
    except UnknownPixels as error:
        raise DataError(f"{path}: {error}") from None
    except Exception as error:  # on damaged files, decoders raise nearly anything
        raise DataError(
            f"{path}: not a readable image: "
            f"{getattr(error, 'strerror', None) or str(error).partition(chr(10))[0] or type(error).__name__}"
        ) from None


@contextlib.contextmanager
def _opened(source: Path | BinaryIO) -> Iterator[Any]:
    """Pillow's image of a file, not yet decoded. Raises many kinds of errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(source, formats=FORMATS) as image:
            yield image


def _not_an_image(source: Path | BinaryIO) -> str:
    """Why a file is not an image, and what to do."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return _not_an_image(file)
    source.seek(0)
    if not (start := source.read(512)):
        return "not a readable image: the file is empty (0 bytes); get it again"
    if start.startswith((b"II*\0", b"MM\0*")):
        return "is a TIFF file with pixels of a kind that is not read, or damaged; convert it to 8 bits, such as PNG"
    return foreign(start) or (
        f"not a readable image: expected one of {', '.join(FORMATS)}; convert the file to one of these formats"
    )


def image_size(source: BinaryIO) -> tuple[int, int] | None:
    """Width and height of an open image file by its header, without decoding it; None if it cannot be read."""
    try:
        with _opened(source) as image:
            size: tuple[int, int] = image.size
            return size
    except TOO_LARGE:
        return MANY_PIXELS
    except Exception:  # on damaged files, decoders raise nearly anything
        return None
