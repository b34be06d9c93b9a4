"""Where pictures come from: a folder of images, an image file, or the source of a data set; none is opened yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from ..configs import DatasetConfig
from ..errors import DataError
from ..files import image_key
from ..parts import Picture
from ..registry import installed
from .images import LISTED, SUFFIXES, duplicate_key, image_files, open_image
from .shards import Shard


@dataclass(frozen=True)
class FolderPictures:
    """The images of a folder and its subfolders, not yet opened, as they are listed; with `shard`, its images only.
    Iterating raises DataError for two images with the same key."""

    folder: Path
    shard: Shard | None = None

    def __iter__(self) -> Iterator[Picture]:
        keys: set[str] = set()
        for path in image_files(self.folder):
            key = image_key(path.name)
            if self.shard and not self.shard.owns(key):
                continue
            if key in keys:
                raise duplicate_key(self.folder, key, path)
            keys.add(key)
            yield Picture(key, partial(open_image, path))


def folder_pictures(folder: str | Path, shard: Shard | None = None) -> Iterable[Picture]:
    """All images of a folder and its subfolders, or those of a shard, not yet opened: a list, or for more than
    `images.LISTED` of them an iterable. Raises DataError for a folder without images, or with two of the same key."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: {'is a file' if folder.exists() else 'no such folder'}; give a folder of images")
    pictures = FolderPictures(folder, shard)
    first = list(islice(pictures, LISTED + 1))
    if not first and not any(True for _ in image_files(folder)):
        raise DataError(f"{folder}: contains no images ({', '.join(SUFFIXES)})")
    return first if len(first) <= LISTED else pictures


def pictures_of(source: str, shard: Shard | None = None) -> Iterable[Picture]:
    """The pictures of a folder, or of another source that a data set reads (`DatasetConfig.pictures_of`), not yet
    opened; with `shard`, its pictures only. Raises DataError."""
    if Path(source).is_dir():
        return folder_pictures(source, shard)
    parts = [part.config for part in installed().parts if issubclass(part.config, DatasetConfig)]
    config = next(filter(None, (part.pictures_of(source) for part in parts)), None)
    if config is None:
        return folder_pictures(source, shard)  # which raises
    return SourcePictures(config, shard)


@dataclass(frozen=True)
class SourcePictures:
    """The pictures of a data set, as they are listed; with `shard`, its pictures only."""

    config: DatasetConfig
    shard: Shard | None = None

    def __iter__(self) -> Iterator[Picture]:
        pictures = self.config.build().pictures()
        return (picture for picture in pictures if self.shard is None or self.shard.owns(picture.key))


def picture(path: str | Path) -> Picture:
    """One image file."""
    return Picture(image_key(Path(path).name), partial(open_image, Path(path)))
