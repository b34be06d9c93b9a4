"""Untrusted image files: list those of a folder, by key; open one as RGB."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from ..errors import DataError
from ..files import image_key
from .pixels import UnknownPixels, as_rgb

SUFFIXES = (".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP", *["AVIF"] * (find_spec("PIL._avif") is not None))
"""Those of Pillow's, as it was built, that are opened; one of its others runs Ghostscript."""
MOST_PIXELS = 89_478_485  # of an image that is opened, as Pillow says; phones have cameras of 48, 50 and 64 million
MANY_PIXELS = (1 << 20, 1 << 20)  # the size that is reported for an image with too many pixels to be opened
TOO_LARGE = (Image.DecompressionBombError, Image.DecompressionBombWarning)


def image_files(folder: Path) -> list[Path]:
    """Image files of a folder and its subfolders, recognised and sorted by name, a folder's own before those of its
    subfolders."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    return sorted(found, key=lambda path: (path.parent.parts, path.name))


def images_by_key(folder: Path) -> dict[str, Path]:
    """Image files of a folder and its subfolders by `files.image_key`. Raises DataError for a duplicate key."""
    paths: dict[str, Path] = {}
    for path in image_files(folder):
        key = image_key(path.name)
        if (first := paths.setdefault(key, path)) != path:
            names = f"{first.relative_to(folder)} and {path.relative_to(folder)}"
            raise DataError(f"{folder}: {names} have the same key '{key}'; rename one of them")
    return paths


def open_image(source: Path | BinaryIO, name: str = "") -> Image.Image:
    """Load an image as RGB (see `pixels.as_rgb`), of several frames the first. The suffix of the file does not matter.
    `name`: the name of an open file, for errors. Raises DataError for a file in none of FORMATS, a truncated file, an
    image with so many pixels that it would fill the memory, or pixels whose range is not known."""
    try:
        with _opened(source) as image:
            return as_rgb(image)
    except UnknownPixels as error:
        reason = str(error)
    except TOO_LARGE:
        reason = f"has more than the {MOST_PIXELS:,} pixels that are read; make it smaller"
    except UnidentifiedImageError:
        reason = f"not a readable image: expected one of {', '.join(FORMATS)}; convert it, or download the file again"
    except Exception as error:  # on damaged files, decoders raise nearly anything
        text = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
        reason = f"not a readable image: {text}"
    raise DataError(f"{name or source}: {reason}")


def image_size(source: BinaryIO) -> tuple[int, int] | None:
    """Width and height of an open image file by its header, without decoding it; None if it cannot be read."""
    try:
        with _opened(source) as image:
            return image.size
    except TOO_LARGE:
        return MANY_PIXELS
    except Exception:  # on damaged files, decoders raise nearly anything
        return None


def _opened(source: Path | BinaryIO) -> Image.Image:
    """Pillow's image of a file, not yet decoded. Raises many kinds of errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(source, formats=FORMATS)
