"""Raw images in a folder: which file is which image."""

from __future__ import annotations

from pathlib import Path

from mmgen.errors import DataError
from mmgen.features.images import image_files
from mmgen.features.store import image_key


def index(folder: Path) -> dict[str, Path]:
    """Images in a folder and its subfolders by key. Raises DataError when two have the same."""
    found: dict[str, Path] = {}
    for path in image_files(folder):
        other = found.setdefault(image_key(path.name), path)
        if other != path:
            raise DataError(
                f"{folder}: {other.relative_to(folder)} and {path.relative_to(folder)} are both image "
                f"'{image_key(path.name)}'; rename one"
            )
    return found
