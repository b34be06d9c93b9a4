"""Short names for paths that stand side by side in a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def tell_apart(paths: Sequence[Path]) -> list[str]:
    """A label for each path: what lies between the beginning and the end that all of them share.

    One path alone is its last part. The labels differ where the paths do."""
    parts = [path.absolute().parts for path in paths]
    while all(len(segments) > 1 for segments in parts) and len({segments[0] for segments in parts}) == 1:
        parts = [segments[1:] for segments in parts]
    while all(len(segments) > 1 for segments in parts) and len({segments[-1] for segments in parts}) == 1:
        parts = [segments[:-1] for segments in parts]
    return ["/".join(segments) for segments in parts]
