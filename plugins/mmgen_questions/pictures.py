"""Raw images in a folder: which file is which image, and opening one."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from PIL import Image, ImageOps

from mmgen.errors import DataError
from mmgen.store import image_key

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


def index(folder: Path) -> dict[str, Path]:
    """Images in a folder and its subfolders by key. Raises DataError when two have the same."""
    found: dict[str, Path] = {}
    for place, subfolders, names in os.walk(folder):
        subfolders.sort()
        for name in sorted(names):
            if name.lower().endswith(ENDINGS):
                path = Path(place, name)
                other = found.setdefault(image_key(name), path)
                if other != path:
                    raise DataError(
                        f"{folder}: {other.relative_to(folder)} and {path.relative_to(folder)} are both image '{image_key(name)}'; rename one"
                    )
    return found


def open_picture(path: Path) -> Image.Image:
    """RGB, the right way up. Raises DataError when it cannot be read, or claims so many pixels that it would fill the memory."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                return ImageOps.exif_transpose(image).convert("RGB")
    except Exception as error:  # decoders of damaged files raise nearly anything
        raise DataError(f"{path}: not an image that can be read: {str(error).partition(chr(10))[0] or type(error).__name__}") from None
