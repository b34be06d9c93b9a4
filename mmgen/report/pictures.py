"""Pictures of a data set as small JPEGs that a page carries inside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence

from ..data.datasets import pictures_of
from ..errors import MmgenError
from ..parts import Dataset, Picture
from ..tensors import Example

SIDE, QUALITY = 320, 72  # longer side in pixels, for a gallery of hundreds; JPEG's

Shot = tuple[str, int, int]  # data URI, width, height


Found = Mapping[str, Sequence[Picture]]  # example id -> its pictures


def find(dataset: Dataset, examples: Sequence[Example]) -> tuple[Found, str]:
    """The pictures of those examples whose pictures are all there; and why there are none, or ""."""
    try:
        pictures = pictures_of(dataset, examples)
    except MmgenError as error:
        return {}, f"No pictures: {error}"
    return {example.id: shown for example in examples if (shown := _shown(example, pictures))}, ""


def thumbnails(
    example_pictures: Found, advance: Callable[..., None], side: int = SIDE
) -> tuple[dict[str, tuple[Shot, ...]], str]:
    """Example id -> its pictures, for those whose pictures can all be read; and which cannot, or ""."""
    shots: dict[str, tuple[Shot, ...]] = {}
    broken = []
    for name, shown in example_pictures.items():
        try:
            shots[name] = tuple(thumbnail(picture, side) for picture in shown)
        except (MmgenError, OSError, ValueError) as error:
            broken.append(f"{', '.join(picture.key for picture in shown)} ({error})")
        advance()
    return shots, f"Pictures that cannot be read: {', '.join(broken[:5])}" if broken else ""


def _shown(example: Example, pictures: Mapping[str, Picture]) -> list[Picture]:
    """The pictures of the first input that names any, if all of them are there."""
    for field in example.inputs:
        keys = [key for key in example.shown(field) if isinstance(key, str)]
        if keys and all(key in pictures for key in keys):
            return [pictures[key] for key in keys]
    return []


def thumbnail(picture: Picture, side: int = SIDE) -> Shot:
    image = picture.load().convert("RGB")
    image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}", image.width, image.height
