"""Untrusted image files: list those of a folder, by key; open one as RGB. All images and arrays become RGB here."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ..errors import DataError, regular
from ..files import foreign, image_key

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
MANY_PIXELS = (1 << 20, 1 << 20)  # the size that is reported for an image with too many pixels to be opened
MOST_PAGES = 1000  # of a TIFF file that are counted
FRAMES = "frames"  # key of `Image.info`: how many frames the file of an image has, if there are several
BITS, PHOTOMETRIC, SUBFILE, DNG = 258, 262, 254, 50706  # tags of TIFF
FILE_DEPTH = {
    "1": 255,
    "L;2": 85,
    "L;4": 17,
    "RGB;16B": 1 / 256,
}  # raw modes whose transparent colour Pillow leaves as is
ADVICE = "scale the values to 0 to 255, and give 8 bits"
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
    """Load an image as RGB (see `as_rgb`): of several frames the first, with their number as `info[FRAMES]`. The suffix
    of the file does not matter. `name`: the name of an open file, for errors. Raises DataError for a file in none of
    FORMATS, a truncated file, a pipe, an image with so many pixels that it would fill the memory, or pixels whose range
    is not known."""
    path = name or source
    try:
        with _opened(source) as image:
            if image.format == "TIFF":
                named_raw = isinstance(source, Path) and source.suffix.lower() in RAW
                if named_raw or DNG in image.tag_v2 or image.tag_v2.get(SUBFILE) == 1:
                    raise UnknownPixels("is a camera's raw file, with a preview; convert it to JPEG or PNG")
            rgb = as_rgb(image)
            if (frames := count_frames(image)) > 1:
                rgb.info[FRAMES] = frames
            return rgb
    except UnidentifiedImageError:
        raise DataError(f"{path}: {_not_an_image(source)}") from None
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
        with Image.open(regular(source) if isinstance(source, Path) else source, formats=FORMATS) as image:
            yield image


def _not_an_image(source: Path | BinaryIO) -> str:
    """Why a file is not an image, and what to do."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return _not_an_image(file)
    source.seek(0)
    if not (start := source.read(512)):
        return "not a readable image: the file is empty (0 bytes); get it again"
    return foreign(start, "picture") or (
        f"not a readable image: expected one of {', '.join(FORMATS)}; convert the file to one of these formats"
    )


def image_size(source: BinaryIO) -> tuple[int, int] | None:
    """Width and height of an open image file by its header, without decoding it; None if it cannot be read."""
    try:
        with _opened(source) as image:
            size: tuple[int, int] = image.size
            return size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return MANY_PIXELS
    except Exception:  # on damaged files, decoders raise nearly anything
        return None


def count_frames(image: Image.Image) -> int:
    """How many frames an opened image has; of a TIFF file, at most MOST_PAGES are counted."""
    count, first = 1, image.tell()
    with contextlib.suppress(Exception):  # a later frame is damaged, or missing
        if image.format == "MPO" or not getattr(image, "is_animated", False):  # MPO: a photo with previews or depths
            return 1
        if image.format != "TIFF":
            return int(getattr(image, "n_frames", 1))
        for count in range(1, MOST_PAGES + 1):  # to the first page that is missing
            image.seek(count)
    with contextlib.suppress(Exception):
        image.seek(first)
    return count


class UnknownPixels(ValueError):
    """What is wrong with the pixels of an image, and what to do: "has ..., give ..."."""


def as_rgb(image: Image.Image) -> Image.Image:
    """A copy of an opened image as RGB with 8 bits, turned upright by its EXIF orientation. Grey values of 16 bits are
    divided by 257, and transparent pixels are shown on white. Raises UnknownPixels for values whose range is not
    known."""
    if image.mode in ("I", "F"):
        kind = "integers of 32 bits" if image.mode == "I" else "floating-point numbers"
        raise UnknownPixels(f"has pixels of {kind}, whose range is not known; {ADVICE}")
    tiles: Any = getattr(image, "tile", ()) if image.format == "PNG" else ()
    depth = FILE_DEPTH.get(tiles[0][3]) if tiles else None
    tags = getattr(image, "tag_v2", {})
    upright = ImageOps.exif_transpose(image)
    if depth and (key := upright.info.get("transparency")) is not None:
        levels = [min(255, int(level * depth)) for level in (key if isinstance(key, tuple) else (key,))]
        upright.info["transparency"] = tuple(levels) if len(levels) > 1 else levels[0]
    if upright.mode.startswith("I;16"):
        upright = _grey_of_16_bits(upright, tags)
    if upright.has_transparency_data:
        layer = (upright.convert("LA") if upright.mode == "La" else upright).convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return upright if upright.mode == "RGB" else upright.convert("RGB")


def _grey_of_16_bits(image: Image.Image, tags: Any) -> Image.Image:
    """Grey of 16 bits, or of 12 in a TIFF file with these tags, as 8 bits, with its transparent value as alpha."""
    values = np.asarray(image)
    largest = (1 << tags.get(BITS, (16,))[0]) - 1
    grey = Image.fromarray(_as_bytes(largest - values if tags.get(PHOTOMETRIC) == 0 else values, largest))
    if (transparent := image.info.get("transparency")) is not None:
        grey.putalpha(Image.fromarray(np.where(values == transparent, 0, 255).astype(np.uint8)))
    return grey


def _as_bytes(values: np.ndarray, largest: int = 65535) -> np.ndarray:
    """Values up to `largest` as values up to 255, rounded."""
    return ((values.astype(np.uint32) * 255 + largest // 2) // largest).astype(np.uint8)


def from_array(array: np.ndarray) -> Image.Image:
    """An array of pixels as RGB: (H, W) grey, (H, W, 3) RGB, or (H, W, 2) and (H, W, 4) with alpha; of uint8, of
    uint16, which is divided by 257, or of bool. Raises ValueError for any other array, also for int64, since nobody
    knows its range."""
    known = array.dtype == bool or array.dtype.kind == "u" and array.dtype.itemsize <= 2
    if array.ndim < 2 or array.shape[2:] not in ((), (1,), (2,), (3,), (4,)) or not known:
        raise ValueError(
            "the array of a picture must be (H, W), (H, W, 3) or (H, W, 4) of uint8, uint16 or bool, not "
            f"{array.shape} of {array.dtype}; convert values from 0 to 255 with array.astype('uint8'), values from 0 "
            "to 1 with (255 * array).astype('uint8')"
        )
    if 0 in array.shape:
        raise ValueError(f"the picture has no pixels: it is {array.shape[1]} wide and {array.shape[0]} high")
    if array.dtype != np.uint8:
        array = array.astype(np.uint8) * 255 if array.dtype == bool else _as_bytes(array)
    return as_rgb(Image.fromarray(array[:, :, 0] if array.shape[2:] == (1,) else array))
