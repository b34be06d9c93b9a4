"""Shards: work shared by several machines. The hash of its key says which shard has a picture.

So shards need not know of each other, and together they are what one process does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

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
