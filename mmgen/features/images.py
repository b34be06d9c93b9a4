"""Untrusted image files: find the images of a folder, and open an image."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from PIL import Image, ImageOps, UnidentifiedImageError

from ..errors import DataError, regular
from ..files import foreign, image_key

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
FORMATS = (
    "BMP",
    "GIF",
    "JPEG",
    "PNG",
    "TIFF",
    "WEBP",
)  # of more formats, one starts Ghostscript
NOT_READ = (
    ".arw",
    ".avif",
    ".cr2",
    ".cr3",
    ".dng",
    ".heic",
    ".heif",
    ".jp2",
    ".jxl",
    ".nef",
)  # photos in formats that are not supported
MANY_PIXELS = (1 << 20, 1 << 20)  # the size that is reported for an image with too many pixels to be opened
log = logging.getLogger("mmgen")


def image_files(folder: Path) -> Iterator[Path]:
    """Image files of a folder and its subfolders, recognised and sorted by name. Logs how many photos of unsupported
    formats are skipped."""
    unsupported = []
    for place, subfolders, names in os.walk(folder):
        subfolders.sort()
        yield from (Path(place, name) for name in sorted(names) if name.lower().endswith(SUFFIXES))
        unsupported += [Path(place, name) for name in sorted(names) if name.lower().endswith(NOT_READ)]
    if unsupported:
        kinds = " and ".join(sorted({path.suffix.lower() for path in unsupported}))
        first = unsupported[0].relative_to(folder)
        photos = f"{len(unsupported)} photos, such as {first}" if unsupported[1:] else str(first)
        log.warning(f"{folder}: skipped {photos}: {kinds} files are not supported; convert them to JPEG or PNG")


def images_by_key(folder: Path) -> dict[str, Path]:
    """Image files of a folder and its subfolders by `files.image_key`. Raises DataError for a duplicate key."""
    paths: dict[str, Path] = {}
    for path in image_files(folder):
        first_path = paths.setdefault(image_key(path.name), path)
        if first_path != path:
            raise DataError(
                f"{folder}: {first_path.relative_to(folder)} and {path.relative_to(folder)} have the same key "
                f"'{image_key(path.name)}'; rename one of them"
            )
    return paths


def open_image(source: Path | BinaryIO, name: str = "") -> Image.Image:
    """Load an image as RGB, turned upright by its EXIF orientation. The suffix of the file does not matter. `name`: the
    name of an open file, for errors. Raises DataError for a file in none of FORMATS, a truncated file, a pipe, or an
    image with so many pixels that it would fill the memory."""
    path = name or source
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(regular(source) if isinstance(source, Path) else source, formats=FORMATS) as image:
                return upright(image)
    except UnidentifiedImageError:
        if what := foreign(source if isinstance(source, Path) else _start(source), "picture"):
            raise DataError(f"{path}: {what}") from None
        raise DataError(
            f"{path}: not a readable image: expected one of {', '.join(FORMATS)}; convert the file to one of these "
            "formats"
        ) from None
    except Exception as error:  # on damaged files, decoders raise nearly anything
        raise DataError(
            f"{path}: not a readable image: "
            f"{getattr(error, 'strerror', None) or str(error).partition(chr(10))[0] or type(error).__name__}"
        ) from None


def image_size(source: BinaryIO) -> tuple[int, int] | None:
    """Width and height of an open image file by its header, without decoding it; None if it cannot be read."""
    try:
        with Image.open(source, formats=FORMATS) as image:
            return image.size
    except Image.DecompressionBombError:
        return MANY_PIXELS
    except Exception:  # on damaged files, decoders raise nearly anything
        return None


def _start(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(512)


def upright(image: Image.Image) -> Image.Image:
    """An opened image as RGB, turned upright by its EXIF orientation."""
    return ImageOps.exif_transpose(image).convert("RGB")
