"""Short names for paths in one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def tell_apart(paths: Sequence[Path]) -> list[str]:
    """A name per path: the path without the leading and trailing parts that all paths share.

    The name of a single path is its last part. Different paths have different names."""
    parts = [path.absolute().parts for path in paths]
    for end, rest in ((0, slice(1, None)), (-1, slice(-1))):
        while min(map(len, parts)) > 1 and len({segments[end] for segments in parts}) == 1:
            parts = [segments[rest] for segments in parts]
    return ["/".join(segments) for segments in parts]
