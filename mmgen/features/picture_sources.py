"""Where pictures come from: a folder of images, an image file, or the source of a data set; none is opened yet."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from ..configs import DatasetConfig
from ..errors import DataError
from ..files import image_key
from ..parts import Picture
from ..registry import installed
from .images import SUFFIXES, images_by_key, open_image


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
