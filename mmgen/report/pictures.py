"""Pictures on the page and in notebooks: finds those of examples, and makes thumbnails, JPEGs inside the HTML."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape

from ..data.datasets import pictures_of
from ..errors import MmgenError
from ..examples import Example
from ..features.images import load_image
from ..parts import Dataset, Picture

SIDE, QUALITY = 320, 72  # longer side in pixels, small enough for hundreds of pictures; JPEG quality

Shot = tuple[str, int, int]  # data URI, width, height

PicturesById = Mapping[str, Sequence[Picture]]  # example id -> its pictures


def find(dataset: Dataset, examples: Sequence[Example]) -> tuple[PicturesById, str]:
    """The pictures of the first input that names pictures, of the examples whose pictures are all available; and a note
    if the data set has none, else ""."""
    try:
        pictures = pictures_of(dataset, examples)
    except MmgenError as error:
        return {}, f"No pictures: {error}"
    results: dict[str, list[Picture]] = {}
    for example in examples:
        for field in [*example.inputs][::-1]:
            keys = [key for key in example.shown(field) if isinstance(key, str)]
            if keys and all(key in pictures for key in keys):
                results[example.id] = [pictures[key] for key in keys]
    return results, ""


def thumbnails(example_pictures: PicturesById, side: int = SIDE) -> tuple[dict[str, list[Shot]], str]:
    """Example id -> its thumbnails, for examples whose pictures are all readable; and a note on the others, or ""."""
    shots: dict[str, list[Shot]] = {}
    errors = []
    for example_id, group in example_pictures.items():
        try:
            shots[example_id] = [thumbnail(picture, side) for picture in group]
        except (MmgenError, OSError, ValueError) as error:
            errors.append(f"{', '.join(picture.key for picture in group)} ({error})")
    return shots, f"Unreadable pictures: {', '.join(errors[:5])}" if errors else ""


def thumbnail(picture: Picture, side: int = SIDE) -> Shot:
    """A picture as a small JPEG in a data URI."""
    image = load_image(picture)
    image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}", image.width, image.height


def picture_tags(pictures: Sequence[Picture], side: int = 200) -> str:
    """Pictures as HTML for a notebook, side by side. A picture that cannot be read is left out."""
    shots, _ = thumbnails({str(place): [picture] for place, picture in enumerate(pictures)}, side)
    return "".join(
        f'<img src="{uri}" width="{width}" height="{height}" alt="{escape(pictures[int(place)].key)}">'
        for place, ((uri, width, height),) in shots.items()
    )
