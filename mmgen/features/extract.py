"""Extract: fill a feature store from pictures, or from a file of features that somebody published."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import DataError, shown
from ..files import image_key
from ..parts import Extractor, FailedImage, Picture
from ..progress import Progress
from .images import SUFFIXES, image_files, open_image
from .writer import StoreWriter

WAIT = 1.0  # seconds between two looks whether another process is still filling the store


@dataclass(frozen=True)
class Summary:
    """What became of a source.

    written     images that were added
    skipped     images that were in the store already
    broken      (key, reason) of images that were left out
    duplicates  records left out because their image had come before
    clipped     images with boxes that reached outside and were cut
    """

    path: Path
    written: int
    skipped: int
    broken: tuple[tuple[str, str], ...]
    duplicates: int
    clipped: int


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
    """Everything of `source` that is not in the store at `path` yet. What cannot be read is listed, not fatal.

    Stopped at any moment, the same call goes on where it was. Raises DataError when nothing at all could be read, or
    when the source breaks off; what was read until then is kept for the next call. `wait`: while another process fills
    the store, which is refused otherwise.
    """
    progress, broken, written = progress or Progress(), [], 0
    with StoreWriter(path, extractor.fingerprint, dtype, _waiting(path, progress) if wait else None) as writer:
        there = frozenset(writer.keys)
        total = extractor.count(source)
        with progress.task(
            label, total, "images", done=len(there) if total is None else min(len(there), total)
        ) as advance:
            try:
                for outcome in extractor.records(source, there):
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
                        )  # a stranger's key may hold one
                    advance(1, f"{len(broken)} broken" if broken else "")
            except DataError as error:
                if not writer.keys:
                    raise
                raise DataError(
                    f"{error}; {len(writer.keys)} images are kept in {writer.partial}, and the same command goes on "
                    "from there"
                ) from None
        if not writer.keys:
            reason = (
                f"the first of {len(broken)}: {broken[0][0]}: {broken[0][1]}"
                if broken
                else f"{source if isinstance(source, Path) else 'the source'} holds no images"
            )
            raise DataError(f"{path}: not made, no image gave features; {reason}")
        if writer.waiting:
            with progress.task(f"{label}: {path.name}", len(writer.keys), "images") as advance:
                writer.finish(lambda: advance(1))
        else:
            writer.finish()
        return Summary(path, written, len(there), tuple(broken), writer.duplicates, writer.clipped)


def _waiting(path: Path, progress: Progress) -> Callable[[], None]:
    """Says once what is waited for, and waits a little whenever it is called."""
    said = False

    def wait() -> None:
        nonlocal said
        if not said:
            progress.say(f"{path}: another process is filling it; waiting for it to end")
        said = True
        time.sleep(WAIT)

    return wait


def folder_pictures(folder: str | Path) -> list[Picture]:
    """Every image in a folder and the folders inside it, by key; none is opened. Raises DataError when there are none,
    or when two have one key."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: {'is a file' if folder.exists() else 'no such folder'}; give a folder of images")
    pictures: dict[str, Path] = {}
    for path in image_files(folder):
        other = pictures.setdefault(image_key(path.name), path)
        if other is not path:
            raise DataError(f"{path}: has the key '{image_key(path.name)}', and so has {other}; rename one of them")
    if not pictures:
        raise DataError(f"{folder}: holds no images ({', '.join(SUFFIXES)})")
    return [Picture(key, partial(open_image, path)) for key, path in pictures.items()]


def picture(path: str | Path) -> Picture:
    """One image file."""
    return Picture(image_key(Path(path).name), partial(open_image, Path(path)))
