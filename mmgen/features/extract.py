"""Fill a feature store from pictures, or from a file of published features."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from ..configs import DatasetConfig
from ..errors import DataError, shown
from ..files import image_key
from ..parts import Extractor, FailedImage, Picture
from ..progress import Progress
from ..registry import built, installed
from .images import LISTED, SUFFIXES, duplicate_key, image_files, open_image
from .shards import Shard
from .writer import StoreWriter

WAIT = 1.0  # seconds between two checks whether another process still writes the store


@dataclass(frozen=True)
class Summary:
    """The result of `extract`.

    written     images that were added
    skipped     images that were already in the store
    broken      (key, reason) of images that could not be read or stored
    duplicates  records left out because of an earlier record with the same key
    clipped     images whose boxes reached outside of the image and were clipped
    """

    path: Path
    written: int
    skipped: int
    broken: tuple[tuple[str, str], ...]
    duplicates: int
    clipped: int


class NoFeatures(DataError):
    """None of the images could be read; `broken` has their keys and reasons."""

    def __init__(self, message: str, broken: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.broken = broken


def extract(
    extractor: Extractor,
    source: Iterable[Picture] | Path,
    path: Path,
    *,
    dtype: str = "float16",
    progress: Progress | None = None,
    label: str = "features",
    wait: bool = False,
) -> Summary:
    """Add the images of `source` that are not yet in the store at `path`. Images that cannot be read are listed in the
    summary.

    After a stop at any moment, the same call continues. Raises DataError if no image could be read, or if the source
    fails in the middle; the images read until then are saved for the next call. `wait`: wait while another process
    writes the store, instead of raising DataError.
    """
    progress, broken, written = progress or Progress(), [], 0
    with StoreWriter(path, extractor.fingerprint, dtype, _wait_function(path, progress) if wait else None) as writer:
        stored_keys = frozenset(writer.keys)
        total = extractor.count(source)
        with progress.task(
            label, total, "images", done=len(stored_keys) if total is None else min(len(stored_keys), total)
        ) as advance:
            try:
                for outcome in extractor.records(source, stored_keys):
                    if isinstance(outcome, FailedImage):
                        reason: str | None = outcome.reason
                    else:
                        reason = None
                        try:
                            written += writer.add(outcome)
                        except DataError as error:
                            reason = f"{source}: {error}" if isinstance(source, Path) else str(error)
                    if reason is not None:
                        broken.append(
                            (outcome.key, shown(reason.replace("\n", r"\n")))
                        )  # an untrusted key may contain a line break
                    advance(1, f"{len(broken)} broken" if broken else "")
            except DataError as error:
                if not writer.keys:
                    raise
                raise DataError(
                    f"{error}; {len(writer.keys)} images are saved in {writer.partial}; re-run the same command to "
                    "continue"
                ) from None
        if not writer.keys:
            reason = (
                f"first of {len(broken)} failures: {broken[0][0]}: {broken[0][1]}"
                if broken
                else f"{source if isinstance(source, Path) else 'the source'} contains no images"
            )
            raise NoFeatures(f"{path}: not created, because no image could be processed; {reason}", tuple(broken))
        if writer.waiting:
            with progress.task(f"{label}: {path.name}", len(writer.keys), "images") as advance:
                writer.finish(lambda: advance(1))
        else:
            writer.finish()
        return Summary(path, written, len(stored_keys), tuple(broken), writer.duplicates, writer.clipped)


def _wait_function(path: Path, progress: Progress) -> Callable[[], None]:
    """A function that waits for a moment, and at its first call says why."""
    announced = False

    def wait() -> None:
        nonlocal announced
        if not announced:
            progress.say(f"{path}: another process is writing this store; waiting until it ends")
        announced = True
        time.sleep(WAIT)

    return wait


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
    `images.LISTED` of them an iterable. Raises DataError if there are no images, or if two have the same key."""
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
        pictures = built(self.config, self.config.build, self.config.type).pictures()
        return (picture for picture in pictures if self.shard is None or self.shard.owns(picture.key))


def picture(path: str | Path) -> Picture:
    """One image file."""
    return Picture(image_key(Path(path).name), partial(open_image, Path(path)))
