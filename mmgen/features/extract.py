"""Fill a feature store from pictures or a published file: continue, wait for another process, list what is broken; the
shards of several machines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ..errors import DataError, shown
from ..parts import Extractor, FailedImage, Picture
from ..progress import Progress
from .writer import StoreWriter


@dataclass(frozen=True)
class Shard:
    """Shard `number`, counted from 1, of `count`."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard that --shard names, such as "3/8". Raises DataError."""
        match = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", text, re.ASCII)
        if not match or int(match[1]) > int(match[2]):
            raise DataError(f"--shard {text:.40}: write NUMBER/COUNT, such as 3/8 for the third of eight shards")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def owns(self, key: str) -> bool:
        """Whether a key is in this shard: in exactly one of `count`, on every machine."""
        digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1


@dataclass(frozen=True)
class Summary:
    """The result of `extract`: how many images were added, how many were in the store before, and how many came twice;
    (key, reason) of those that could not be read or stored."""

    path: Path
    written: int
    skipped: int
    duplicates: int
    broken: tuple[tuple[str, str], ...]

    @property
    def failure(self) -> str:
        """The error of a command that failed for more images than are stored, or found none; "" if it did not."""
        failed, stored = len(self.broken), self.written + self.skipped
        if failed <= stored and stored:
            return ""
        first = f", first {self.broken[0][0]}: {self.broken[0][1]}" if failed else ""
        problem = f"{failed} of {failed + stored} images failed{first}"
        return (
            f"{self.path}: {problem}; correct the source, or the extractor's settings, and run the same command again"
        )


def extract(
    extractor: Extractor,
    source: Iterable[Picture] | Path,
    path: Path,
    *,
    dtype: str = "float16",
    shard: Shard | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Add the images of `source`, or those of a shard, that are not yet in the store at `path`. After a stop at any
    moment, the same call continues. While another process writes the store, it waits.
    """
    progress = progress or Progress()
    written, duplicates, broken = 0, 0, list[tuple[str, str]]()

    def busy() -> None:
        progress.say(f"{path}: another process is writing this store; waiting until it ends")

    if shard is not None and not isinstance(source, Path):
        source = [picture for picture in source if shard.owns(picture.key)]
    prefix = f"shard-{shard.number}-of-{shard.count}" if shard else "part"
    with StoreWriter(path, extractor.fingerprint, dtype, prefix, busy) as writer:
        before, total = frozenset(writer.keys), extractor.count(source)
        with progress.task("features", total, "images", done=min(len(before), total or len(before))) as advance:
            for outcome in extractor.records(source, before):
                try:
                    if isinstance(outcome, FailedImage):
                        raise DataError(outcome.reason)
                    added = writer.add(outcome)
                    written, duplicates = written + added, duplicates + (not added)
                except DataError as error:
                    place = getattr(outcome, "place", "")
                    broken.append((outcome.key, shown(f"{place}: {error}".removeprefix(": ").replace("\n", r"\n"))))
                advance(1, f"{len(broken)} broken" if broken else "")
    done = written + duplicates + len(broken)
    skipped = len(before) if total is None else max(0, total - done)
    return Summary(path, written, skipped, duplicates, tuple(broken))
