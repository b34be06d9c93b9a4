"""Fill a feature store from pictures or a published file: continue, wait for another process, list what is broken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from PIL import Image

from ..errors import DataError, shown
from ..parts import Extractor, FailedImage, Picture
from ..progress import Progress
from .pixels import FRAMES, load_image
from .store_check import UnlikeEarlier
from .writer import StoreWriter

WAIT = 1.0  # seconds between two checks whether another process still writes the store


@dataclass(frozen=True)
class Summary:
    """The result of `extract`.

    written     images that were added
    skipped     images of the source that were already in the store; all of the store where the source has no count
    broken      (key, reason) of images that could not be read or stored
    duplicates  (key, place) of records left out because of an earlier record with the same key
    clipped     images whose boxes reached outside of the image and were clipped
    """

    path: Path
    written: int
    skipped: int
    broken: tuple[tuple[str, str], ...]
    duplicates: tuple[tuple[str, str], ...]
    clipped: int

    @property
    def failure(self) -> str:
        """See `mostly_failed`."""
        return mostly_failed(self.path, len(self.broken), self.written + self.skipped)


def mostly_failed(path: Path, failures: int, successes: int) -> str:
    """The error of a command that failed for more images than it stored; "" if it did not."""
    if failures <= successes:
        return ""
    count = f"{failures} of {failures + successes} images failed; the others are stored"
    return f"{path}: {count}. Correct the source, or the extractor's settings, and run the same command again"


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

    After a stop at any moment, the same call continues. Raises DataError if no image could be read, if two images, or
    one of two, are unlike the earlier ones, which may be wrong themselves, or if the source fails in the middle; the
    images read until then are saved for the next call. `wait`: wait while another process writes the store, instead
    of raising DataError.
    """
    progress, outcomes = progress or Progress(), 0
    broken, duplicates = list[tuple[str, str]](), list[tuple[str, str]]()
    several: list[tuple[str, int]] = []  # keys of images with several frames, and how many
    unlike, first = list[tuple[str, str]](), ""  # (key, reason) of images unlike earlier ones; the first of those
    with StoreWriter(path, extractor.fingerprint, dtype, _wait_function(path, progress) if wait else None) as writer:
        stored_keys = frozenset(writer.keys)
        total = extractor.count(source)
        with progress.task(
            label, total, "images", done=len(stored_keys) if total is None else min(len(stored_keys), total)
        ) as advance:
            try:
                for outcome in extractor.records(_noting_frames(source, several), stored_keys):
                    outcomes += 1
                    place = str(source) if isinstance(source, Path) else ""
                    reason, disagrees = None, False
                    if isinstance(outcome, FailedImage):
                        reason, disagrees = outcome.reason, outcome.unlike_earlier
                    else:
                        place = outcome.place or place
                        try:
                            if not writer.add(outcome):
                                duplicates.append((shown(outcome.key), shown(place)))
                            first = first or ", ".join(filter(None, (f"first '{outcome.key}'", place)))
                        except DataError as error:
                            reason = f"{place}: {error}" if place else str(error)
                            disagrees = isinstance(error, UnlikeEarlier)
                    if reason is not None:  # an untrusted key may contain a line break
                        broken.append((outcome.key, shown(reason.replace("\n", r"\n"))))
                        unlike += broken[-1:] if disagrees else []
                    if len(unlike) > 1:
                        break
                    advance(1, f"{len(broken)} broken" if broken else "")
            except DataError as error:
                if not writer.keys:
                    raise
                raise DataError(
                    f"{error}; {len(writer.keys)} images are saved in {writer.partial}; re-run the same command to "
                    "continue"
                ) from None
        if len(unlike) > 1 or unlike and len(writer.keys) == 1:  # one image against one: either may be wrong
            holder = path if path.exists() else writer.partial
            earlier = first if first and not stored_keys else f"in {holder}"
            also = f", as does image '{unlike[0][0]}'" if len(unlike) > 1 else ""
            raise DataError(
                f"{unlike[-1][1]}{also}; either these or the earlier images ({earlier}) are wrong: correct the source, "
                f"delete {holder} if it has wrong images, and run the same command again"
            )
        if not writer.keys:
            reason = (
                f"first of {len(broken)} failures: {broken[0][0]}: {broken[0][1]}"
                if broken
                else f"{source if isinstance(source, Path) else 'the source'} contains no images"
            )
            raise NoFeatures(f"{path}: not created, because no image could be processed; {reason}", tuple(broken))
        if several:
            (key, frames), more = several[0], len(several) - 1
            also = f", as of {more:,} more images with several frames" if more else ""
            progress.say(f"{label}: {shown(key)}: {frames:,} frames; the first was read{also}")
        if writer.waiting:
            with progress.task(f"{label}: {path.name}", len(writer.keys), "images") as advance:
                writer.finish(lambda: advance(1))
        else:
            writer.finish()
        written = outcomes - len(broken) - len(duplicates)
        skipped = len(stored_keys) if total is None else max(0, total - outcomes)
        return Summary(path, written, skipped, tuple(broken), tuple(duplicates), writer.clipped)


def _noting_frames(source: Iterable[Picture] | Path, several: list[tuple[str, int]]) -> Iterable[Picture] | Path:
    """The same pictures; those with several frames are added to the list when they are loaded."""

    def load(raw: Picture) -> Image.Image:
        image = load_image(raw)
        if frames := image.info.get(FRAMES):
            several.append((raw.key, frames))
        return image

    if isinstance(source, Path):
        return source
    return (replace(raw, load=partial(load, raw)) for raw in source)


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
