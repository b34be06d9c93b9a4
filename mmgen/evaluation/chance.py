"""Chance: what texts score that know how people write, and nothing about the picture."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.seeds import share_a_picture
from ..tensors import Example, Generation


def references_of_others(examples: Sequence[Example]) -> list[Generation]:
    """For each example the first reference of another one, without a picture in common; from the other half of the
    examples, since neighbours may be alike. Empty if an example has no such other."""
    half, texts = len(examples) // 2, list[Generation]()
    for place, example in enumerate(examples):
        others = (examples[(place + half + step) % len(examples)] for step in range(len(examples)))
        other = next((other for other in others if other.targets and not share_a_picture(example, other)), None)
        if other is None:
            return []
        texts.append(Generation(example.id, other.targets[0], (), 0.0))
    return texts
