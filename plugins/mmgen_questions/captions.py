"""Captions in COCO's format, from any number of files, by image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import each, image_id, listed, tidy, wanted


@dataclass(frozen=True)
class Captions:
    """Captions by image, in the order of their files. `counts`: duplicate_captions and empty_captions, left out."""

    of: dict[str, list[str]]
    counts: Counter


def read_captions(paths: Iterable[Path]) -> Captions:
    """Captions of all files together. A caption (its image and id) that is there twice must say the same."""
    of: dict[str, list[str]] = {}
    seen: dict[tuple[str, str], tuple[str, Path]] = {}
    counts: Counter = Counter()

    def take(item: Any, path: Path) -> None:
        wanted(item, "image_id", "caption")
        key, caption = image_id(item["image_id"], "image_id"), tidy(item["caption"], "caption")
        if "id" in item:
            own = key, image_id(item["id"], "id", plain=True)
            if own in seen:
                _agree(own, caption, path, *seen[own])
                counts["duplicate_captions"] += 1
                return
            seen[own] = caption, path
        if caption:
            of.setdefault(key, []).append(caption)
        else:
            counts["empty_captions"] += 1

    for path in paths:
        each(listed(path, "annotations", "captions", bare=True)[1], path, "annotations", partial(take, path=path))
    return Captions(of, counts)


def _agree(own: tuple[str, str], caption: str, path: Path, before: str, where: Path) -> None:
    if caption != before:
        elsewhere = "earlier in this file" if where == path else f"in {where}"
        raise DataError(
            f"caption {own[1]} of image {own[0]} is '{caption}' here and '{before}' {elsewhere}; keep one of them"
        )
