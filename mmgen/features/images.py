"""Pictures: where they come from, by key; untrusted image files, opened; images as RGB with 8 bits."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ..configs import DatasetConfig
from ..errors import DataError
from ..files import image_key
from ..parts import Picture
from ..registry import installed

SUFFIXES = (".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP", *["AVIF"] * (find_spec("PIL._avif") is not None))
"""Those of Pillow's, as it was built, that are opened; one of its others runs Ghostscript."""
MOST_PIXELS = 89_478_485  # of an image that is opened, as Pillow says; phones have cameras of 48, 50 and 64 million
TOO_LARGE = (Image.DecompressionBombError, Image.DecompressionBombWarning)


def folder_pictures(folder: str | Path) -> list[Picture]:
    """All images of a folder and its subfolders, not yet opened. Raises DataError for a folder without images, or with
    two of the same key."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: {'is a file' if folder.exists() else 'no such folder'}; give a folder of images")
    if not (paths := images_by_key(folder)):
        raise DataError(f"{folder}: contains no images ({', '.join(SUFFIXES)})")
    return [Picture(key, partial(open_image, path)) for key, path in paths.items()]


def pictures_of(source: str) -> Iterable[Picture]:
    """The pictures of a folder, or of another source that a data set reads (`DatasetConfig.pictures_of`), not yet
    opened. Raises DataError."""
    for part in () if Path(source).is_dir() else installed().parts:
        if issubclass(part.config, DatasetConfig) and (config := part.config.pictures_of(source)) is not None:
            return config.build().pictures()
    return folder_pictures(source)


def picture(path: str | Path) -> Picture:
    """One image file."""
    return Picture(image_key(Path(path).name), partial(open_image, Path(path)))


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


def _opened(source: Path | BinaryIO) -> Image.Image:
    """Pillow's image of a file, not yet decoded. Raises many kinds of errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(source, formats=FORMATS)


def load_image(picture: Picture) -> Image.Image:
    """The image of a picture as RGB, upright, whatever its data set loads. Raises DataError, and what `load` raises."""
    try:
        return as_rgb(picture.load())
    except UnknownPixels as error:
        raise DataError(f"{picture.key}: {error}") from None


class UnknownPixels(ValueError):
    """What is wrong with the pixels of an image, and what to do: "has ..., give ..."."""


def as_rgb(image: Image.Image) -> Image.Image:
    """A copy of an opened image as RGB with 8 bits, turned upright by its EXIF orientation. Grey values of 16 bits are
    divided by 257, and transparent pixels are shown on white. Raises UnknownPixels for values whose range
    is not known."""
    if image.mode in ("I", "F"):
        raise UnknownPixels("has pixels whose range is not known; scale the values to 0 to 255, and give 8 bits")
    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I;16"):
        upright = Image.fromarray(_as_bytes(np.asarray(upright)))
    if upright.has_transparency_data:
        layer = (upright.convert("LA") if upright.mode == "La" else upright).convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return upright if upright.mode == "RGB" else upright.convert("RGB")


def _as_bytes(values: np.ndarray) -> np.ndarray:
    """Values of 16 bits as values of 8, rounded."""
    return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)
