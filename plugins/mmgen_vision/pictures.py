"""Finds the picture of an example, for metrics that look at it."""

from __future__ import annotations

from collections.abc import Mapping

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.parts import Picture


def picture_of(example: Example, pictures: Mapping[str, Picture], metric: str) -> Picture:
    """The first picture among the inputs of an example. Raises DataError, which names the metric."""
    for field in example.inputs:
        for value in example.shown(field):
            if isinstance(value, str) and value in pictures:
                return pictures[value]
    raise DataError(f"{metric}: example '{example.id}' has no picture; the data set needs raw images (data.images)")
