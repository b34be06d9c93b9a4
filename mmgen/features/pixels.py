"""Images of every kind, and arrays of pixels, as RGB with 8 bits, as they look; how many frames an image has."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageOps

from ..errors import DataError

if TYPE_CHECKING:
    from ..parts import Picture

FRAMES = "frames"  # key of `Image.info`: how many frames the file of an image has, if there are several
MOST_PAGES = 1000  # of a TIFF file that are counted
BITS, PHOTOMETRIC, SAMPLES = 258, 262, 339  # tags of TIFF
FILE_DEPTH = {"1": 255, "L;2": 85, "L;4": 17, "RGB;16B": 1 / 256}  # raw modes whose transparent colour Pillow leaves
ADVICE = "scale the values to 0 to 255, and give 8 bits"


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
    divided by 257, and transparent pixels are shown on white. The number of frames becomes `info[FRAMES]` if the first
    of several is read. Raises UnknownPixels for values whose range is not known.

    A copy of Pillow's image has no tags of its TIFF file, and no raw mode of its PNG file: a copy of grey of 16 bits is
    read as if 0 is black, and a transparent colour up to 255 as one of 8 bits."""
    tags = getattr(image, "tag_v2", {})
    signed = tags.get(SAMPLES, (1,))[0] == 2
    if image.mode in ("I", "F") or signed:
        bits = tags.get(BITS, (32,))[0]
        kind = f"{'signed ' * signed}integers of {bits} bits" if image.mode != "F" else "floating-point numbers"
        raise UnknownPixels(f"has pixels of {kind}, whose range is not known; {ADVICE}")
    depth = _depth_of_transparent(image)
    upright = ImageOps.exif_transpose(image)
    if depth and (key := upright.info.get("transparency")) is not None:
        levels = [min(255, int(level * depth)) for level in (key if isinstance(key, tuple) else (key,))]
        upright.info["transparency"] = tuple(levels) if len(levels) > 1 else levels[0]
    if upright.mode.startswith("I;16"):
        upright = _grey_of_16_bits(upright, tags)
    if upright.has_transparency_data:
        layer = (upright.convert("LA") if upright.mode == "La" else upright).convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    rgb = upright if upright.mode == "RGB" else upright.convert("RGB")
    if image.tell() == 0 and (frames := _count_frames(image)) > 1:
        rgb.info[FRAMES] = frames
    return rgb


def _depth_of_transparent(image: Image.Image) -> float | None:
    """The factor that makes the transparent colour of a PNG file one of 8 bits, by the file's raw mode, which is not
    known once the image is loaded; then by the colour itself."""
    key, tiles = image.info.get("transparency"), getattr(image, "tile", ()) if image.format == "PNG" else ()
    large = image.mode == "RGB" and isinstance(key, tuple) and max(key) > 255
    return FILE_DEPTH.get("RGB;16B" if large else tiles[0][3] if tiles else image.mode)


def _count_frames(image: Image.Image) -> int:
    """How many frames an opened image has; of a TIFF file, at most MOST_PAGES are counted."""
    count = 1
    with contextlib.suppress(Exception):  # a later frame is damaged, or missing
        if image.format == "MPO" or not getattr(image, "is_animated", False):  # MPO: a photo with previews or depths
            return 1
        if image.format != "TIFF":
            return int(getattr(image, "n_frames", 1))
        for count in range(1, MOST_PAGES + 1):  # to the first page that is missing
            image.seek(count)
    with contextlib.suppress(Exception):
        image.seek(0)
    return count


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
    knows its range, and for one with masked values."""
    channels = ((), (1,), (2,), (3,), (4,))
    known = array.dtype == bool or array.dtype.kind == "u" and array.dtype.itemsize <= 2
    if array.ndim < 2 or array.shape[2:] not in channels or not known:
        advice = (
            "convert values from 0 to 255 with array.astype('uint8'), values from 0 to 1 with (255 * array)"
            ".astype('uint8')"
        )
        if known:
            first = array.ndim == 3 and array.shape[:1] in channels
            advice = "put the channels last: array.transpose(1, 2, 0)" if first else "give one picture, channels last"
        raise ValueError(
            "the array of a picture must be (H, W), (H, W, 3) or (H, W, 4) of uint8, uint16 or bool, not "
            f"{array.shape} of {array.dtype}; {advice}"
        )
    if 0 in array.shape:
        raise ValueError(f"the picture has no pixels: it is {array.shape[1]} wide and {array.shape[0]} high")
    if np.ma.is_masked(array):
        raise ValueError("the array of a picture has masked values; give them one, such as array.filled(255) for white")
    array = np.asarray(array)
    if array.dtype != np.uint8:
        array = array.astype(np.uint8) * 255 if array.dtype == bool else _as_bytes(array)
    return as_rgb(Image.fromarray(array[:, :, 0] if array.shape[2:] == (1,) else array))
