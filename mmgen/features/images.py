"""Untrusted image files: which files are images, and how one is opened."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageOps

from ..errors import DataError, regular

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def image_files(folder: Path) -> Iterator[Path]:
    """Images of a folder and its subfolders, in the order of their names; by these alone, so some may not open."""
    for place, subfolders, names in os.walk(folder):
        subfolders.sort()
        yield from (Path(place, name) for name in sorted(names) if name.lower().endswith(SUFFIXES))


def open_image(path: Path) -> Image.Image:
    """RGB, turned the right way up. Raises DataError for what is no image, is truncated, is a pipe, or claims so many
    pixels that it would fill the memory."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(regular(path)) as image:
                return ImageOps.exif_transpose(image).convert("RGB")
    except Exception as error:  # decoders of damaged files raise nearly anything
        raise DataError(
            f"{path}: not an image that can be read: "
            f"{getattr(error, 'strerror', None) or str(error).partition(chr(10))[0] or type(error).__name__}"
        ) from None
