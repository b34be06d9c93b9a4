"""Images of every kind, and arrays of pixels, as RGB with 8 bits, as they look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageOps

from ..errors import DataError

if TYPE_CHECKING:
    from ..parts import Picture

KINDS = ("uint8", "uint16", "bool")


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


def from_array(array: np.ndarray) -> Image.Image:
    """An array of pixels as RGB: (H, W) grey, (H, W, 3) RGB, or (H, W, 4) with alpha; of uint8; grey also of
    uint16 or bool. Raises ValueError for any other array, since nobody knows its range."""
    array = np.asarray(array)
    try:
        if array.ndim < 2 or 0 in array.shape or array.dtype.name not in KINDS:
            raise TypeError
        return as_rgb(Image.fromarray(array))
    except TypeError:
        kind = f"{array.shape} of {array.dtype}"
        raise ValueError(
            f"the array of a picture must be (H, W), (H, W, 3) or (H, W, 4) of uint8, not {kind}; "
            "convert values from 0 to 1 with (255 * array).astype('uint8'), and put the channels last"
        ) from None
