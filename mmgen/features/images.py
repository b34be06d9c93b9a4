"""Untrusted image files: which files are images, and how one is opened."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from PIL import Image, ImageOps, UnidentifiedImageError

from ..errors import DataError, regular
from ..files import image_key

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")  # Pillow knows more, and starts Ghostscript for one of them
NOT_READ = (".arw", ".avif", ".cr2", ".cr3", ".dng", ".heic", ".heif", ".jp2", ".jxl", ".nef")  # photos none the less
log = logging.getLogger("mmgen")


def image_files(folder: Path) -> Iterator[Path]:
    """Images of a folder and its subfolders, in the order of their names; by these alone, so some may not open. Says
    how many photos of other formats are left out."""
    other = []
    for place, subfolders, names in os.walk(folder):
        subfolders.sort()
        yield from (Path(place, name) for name in sorted(names) if name.lower().endswith(SUFFIXES))
        other += [Path(place, name) for name in sorted(names) if name.lower().endswith(NOT_READ)]
    if other:
        kinds = " and ".join(sorted({path.suffix.lower() for path in other}))
        first = other[0].relative_to(folder)
        some = f"{len(other)} photos, {first} among them" if other[1:] else str(first)
        log.warning(f"{folder}: left out: {some}; {kinds} cannot be read: save as JPEG or PNG")


def images_by_key(folder: Path) -> dict[str, Path]:
    """Images of a folder and its subfolders by `files.image_key`. Raises DataError when two have the same."""
    found: dict[str, Path] = {}
    for path in image_files(folder):
        other = found.setdefault(image_key(path.name), path)
        if other != path:
            raise DataError(
                f"{folder}: {other.relative_to(folder)} and {path.relative_to(folder)} are both image "
                f"'{image_key(path.name)}'; rename one"
            )
    return found


def open_image(source: Path | BinaryIO, name: str = "") -> Image.Image:
    """RGB, turned the right way up. What the file is called does not count. `name`: of a file that is open, for errors.
    Raises DataError for what is no image of these formats, is truncated, is a pipe, or claims so many pixels that it
    would fill the memory."""
    path = name or source
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(regular(source) if isinstance(source, Path) else source, formats=FORMATS) as image:
                return upright(image)
    except UnidentifiedImageError:
        raise DataError(
            f"{path}: not an image that can be read: it is none of {', '.join(FORMATS)}; save it as one of these"
        ) from None
    except Exception as error:  # decoders of damaged files raise nearly anything
        raise DataError(
            f"{path}: not an image that can be read: "
            f"{getattr(error, 'strerror', None) or str(error).partition(chr(10))[0] or type(error).__name__}"
        ) from None


def upright(image: Image.Image) -> Image.Image:
    """An opened image as RGB, turned as its EXIF data say."""
    return ImageOps.exif_transpose(image).convert("RGB")
