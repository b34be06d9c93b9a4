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
    several: list[tuple[str, int]] = []  # keys of images with several frames, and how many
    with StoreWriter(path, extractor.fingerprint, dtype, _wait_function(path, progress) if wait else None) as writer:
        stored_keys = frozenset(writer.keys)
        total = extractor.count(source)
        with progress.task(
            label, total, "images", done=len(stored_keys) if total is None else min(len(stored_keys), total)
        ) as advance:
            try:
                for outcome in extractor.records(_noting_frames(source, several), stored_keys):
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
        if several:
            (key, frames), more = several[0], len(several) - 1
            also = f", as of {more:,} more images with several frames" if more else ""
            progress.say(f"{label}: {shown(key)}: {frames:,} frames; the first was read{also}")
        if writer.waiting:
            with progress.task(f"{label}: {path.name}", len(writer.keys), "images") as advance:
                writer.finish(lambda: advance(1))
        else:
            writer.finish()
        return Summary(path, written, len(stored_keys), tuple(broken), writer.duplicates, writer.clipped)


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
