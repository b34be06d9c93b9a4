"""Folders of an object store: pictures below a URL, listed as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BytesIO

from PIL import Image

from mmgen.errors import DataError
from mmgen.features.images import SUFFIXES, open_image
from mmgen.files import image_key
from mmgen.parts import Picture

from .places import file_system, open_file, remote
from .tars import MOST_BYTES


def pictures(url: str) -> Iterator[Picture]:
    """The pictures below a URL, not yet read; each folder is listed when it is reached. Raises DataError if there are
    none."""
    files, top = file_system(url)
    empty = True
    with remote(url):
        for folder, _, names in files.walk(top):
            for name in sorted(names):
                if name.lower().endswith(SUFFIXES):
                    empty = False
                    place = files.unstrip_protocol(f"{folder}/{name}")
                    yield Picture(image_key(name), partial(_load_picture, place))
    if empty:
        raise DataError(f"{url}: contains no images ({', '.join(SUFFIXES)})")


def _load_picture(place: str) -> Image.Image:
    with remote(place), open_file(place) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"{place}: has more than {MOST_BYTES:,} bytes")
    return open_image(BytesIO(content), place)
