"""Pictures beside examples and texts, as notebooks show them.

All texts are escaped; pictures are small JPEGs inside the HTML, so a saved notebook needs no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..errors import MmgenError
from ..parts import Picture
from .pictures import thumbnail

SIDE = 200  # longer side of a picture, in pixels


def picture_tags(pictures: Sequence[Picture], side: int = SIDE) -> str:
    """Pictures as HTML, side by side. A picture that cannot be read is left out."""
    tags = []
    for picture in pictures:
        try:
            uri, width, height = thumbnail(picture, side)
        except (MmgenError, OSError, ValueError):
            continue
        tags.append(f'<img src="{uri}" width="{width}" height="{height}" alt="{escape(picture.key)}">')
    return "".join(tags)
