"""Shards: work shared by several machines. The hash of a key says which shard has a picture or a query.

So shards need not know of each other, and together they are what one process does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ..errors import DataError


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

    def path(self, path: Path) -> Path:
        """The file of this shard: "answers.jsonl" -> "answers-3-of-8.jsonl"."""
        return path.with_name(f"{path.stem}-{self.number}-of-{self.count}{path.suffix}")


@dataclass(frozen=True)
class ShardOf:
    """The part of a list that is in a shard: the numbers of its elements."""

    shard: Shard
    numbers: Sequence[int]

    @classmethod
    def of(cls, shard: Shard, keys: Iterable[str]) -> ShardOf:
        return cls(shard, [number for number, key in enumerate(keys) if shard.owns(key)])


def shard_files(path: Path, needed: Callable[[Shard], bool] = lambda shard: True) -> dict[Shard, Path]:
    """The files of all shards of `path`, in order. Raises DataError if there are none, if one that is `needed` is
    missing, or if the files are of different numbers of shards."""
    number = r"([1-9]\d{0,5})"
    pattern = re.compile(rf"{re.escape(path.stem)}-{number}-of-{number}{re.escape(path.suffix)}", re.ASCII)
    matches = [match for file in path.parent.glob("*") if (match := pattern.fullmatch(file.name))]
    files = {Shard(int(match[1]), int(match[2])): path.parent / match[0] for match in matches}
    if not files:
        raise DataError(f"{path}: no shards; they are named {Shard(1, 8).path(path).name}, by --shard 1/8")
    counts = sorted({shard.count for shard in files})
    if len(counts) > 1:
        raise DataError(f"{path}: has shards of {counts[0]} and of {counts[1]}; delete those that you do not need")
    shards = [Shard(number, counts[0]) for number in range(1, counts[0] + 1)]
    if missing := [shard for shard in shards if shard not in files and needed(shard)]:
        names = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        raise DataError(f"{path}: {len(missing)} of {counts[0]} shards are missing; run again with --shard {names}")
    return {shard: files[shard] for shard in shards if shard in files}
