"""Mirrored pictures: pixels, boxes, and the words "left" and "right"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image, ImageOps

from mmgen.errors import DataError
from mmgen.examples import All, ResolvedExample
from mmgen.features.images import load_image
from mmgen.parts import Picture

SIDES = re.compile(r"\b(left|right)(?=\b|(?:most|wards?|hand)\b)", re.IGNORECASE)
OPPOSITE = {"left": "right", "right": "left"}
PLACES = ("box", "boxes")  # labels with places in the picture


@dataclass(frozen=True)
class Mirrored:
    """The value of an example whose picture is mirrored."""

    value: Any


def mirror(picture: Picture) -> Picture:
    """The picture with left and right exchanged, its boxes included."""

    def load() -> Image.Image:
        return ImageOps.mirror(load_image(picture))

    boxes = picture.boxes
    mirrored = None if boxes is None else [(1 - x1, y0, 1 - x0, y1) for x0, y0, x1, y1 in boxes]
    return replace(picture, load=load, boxes=mirrored)


def exchange_sides(text: str) -> str:
    """The text with "left" and "right" exchanged, in lower case, capitalised or in upper case."""

    def opposite(match: re.Match[str]) -> str:
        word = match[0]
        side = OPPOSITE[word.lower()]
        return side.upper() if word.isupper() else side.capitalize() if word[0].isupper() else side

    return SIDES.sub(opposite, text)


def mirrored_example(example: ResolvedExample, name: str, field: str, texts: Sequence[str]) -> ResolvedExample:
    """The example as the input `name` shows it mirrored, with exchanged words in the fields `texts`. Raises DataError
    for labels with places, which would have to be mirrored too."""
    if label := next((label for label in example.labels if label in PLACES), None):
        raise DataError(
            f"example '{example.id}': the label '{label}' is a place in the picture, which is not mirrored; set mirror "
            "= false"
        )
    value = example.inputs[field]
    shown = All(tuple(map(Mirrored, value.values))) if isinstance(value, All) else Mirrored(value)
    changed = {text: exchange_sides(inner) for text in texts if isinstance(inner := example.inputs.get(text), str)}
    targets = tuple(map(exchange_sides, example.targets)) if "targets" in texts else example.targets
    return replace(
        example,
        inputs={**example.inputs, **changed},
        targets=targets,
        overrides={**example.overrides, name: {**example.overrides.get(name, {}), field: shown}},
    )
