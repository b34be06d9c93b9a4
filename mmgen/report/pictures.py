"""Pictures of a data set as small JPEGs that a page carries inside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence

from ..data.datasets import pictures_of
from ..errors import MmgenError
from ..parts import Dataset, Picture
from ..tensors import Example

SIDE, QUALITY = 320, 72  # longer side in pixels, for a gallery of hundreds; JPEG's


def thumbnails(
    dataset: Dataset, examples: Sequence[Example], advance: Callable[..., None], side: int = SIDE
) -> tuple[dict[str, tuple[str, int, int]], str]:
    """Example id -> (data URI, width, height), for those whose picture is there; and why others are not, or ""."""
    try:
        found = pictures_of(dataset, examples)
    except MmgenError as error:
        return {}, f"No pictures: {error}"
    made, broken = {}, []
    for example in examples:
        picture = next(
            (found[value] for value in example.inputs.values() if isinstance(value, str) and value in found), None
        )
        if picture is not None:
            try:
                made[example.id] = thumbnail(picture, side)
            except (MmgenError, OSError, ValueError) as error:
                broken.append(f"{picture.key} ({error})")
        advance()
    return made, f"Pictures that cannot be read: {', '.join(broken[:5])}" if broken else ""


def thumbnail(picture: Picture, side: int = SIDE) -> tuple[str, int, int]:
    image = picture.load().convert("RGB")
    image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}", image.width, image.height
