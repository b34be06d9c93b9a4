"""Accumulate: examples cut in two, for updates that do not fit into memory at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..tensors import Example


def halves(examples: Sequence[Example], times: int) -> list[list[Example]]:
    """Examples cut in two so many times; a single one's questions are parted, and a single pair stays whole."""
    pieces = [list(examples)]
    for _ in range(times):
        pieces = [half for piece in pieces for half in _in_two(piece)]
    return pieces


def _in_two(examples: list[Example]) -> list[list[Example]]:
    middle = len(examples) // 2
    if middle:
        return [examples[:middle], examples[middle:]]
    (example,) = examples
    middle = len(example.targets) // 2
    parts = (example.targets[:middle], example.targets[middle:]) if middle else (example.targets,)
    return [[replace(example, targets=part)] for part in parts]
