"""Reads files of COCO's captions; COCO's names of splits in file names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mmgen.errors import DataError
from mmgen.reading.text import image_id, read_items, read_list, require_keys, tidy

CAPTIONS = "captions_{year}.json"
YEARS = {"train": "train2014", "val": "val2014", "test": "test2015", "test_dev": "test-dev2015"}  # in names of files


LEFT_OUT = {"empty_captions": "empty caption{s}", "duplicate_captions": "repeated caption{s}"}  # for messages


class Captions(NamedTuple):
    """Captions by image, in the order of the files. `counts`: numbers of what is left out, by the names of
    `LEFT_OUT`."""

    of: dict[str, list[str]]
    counts: Counter


def read_captions(paths: Iterable[Path]) -> Captions:
    """Read the captions of all files. Duplicates of a caption (same image and id) must have the same text."""
    of: dict[str, list[str]] = {}
    seen: dict[tuple[str, str], tuple[str, Path]] = {}
    counts: Counter = Counter()

    def take(item: Any, path: Path) -> None:
        require_keys(item, "image_id", "caption")
        key, caption = image_id(item["image_id"], "image_id"), tidy(item["caption"], "caption")
        if "id" in item:
            caption_key = key, image_id(item["id"], "id", plain=True)
            if caption_key in seen:
                _check_equal_captions(caption_key, caption, path, *seen[caption_key])
                counts["duplicate_captions"] += 1
                return
            seen[caption_key] = caption, path
        if caption:
            of.setdefault(key, []).append(caption)
        else:
            counts["empty_captions"] += 1

    for path in paths:
        read_items(
            read_list(path, "annotations", "captions", bare=True)[1], path, "annotations", partial(take, path=path)
        )
    return Captions(of, counts)


def _check_equal_captions(caption_key: tuple[str, str], caption: str, path: Path, before: str, where: Path) -> None:
    if caption != before:
        elsewhere = "earlier in this file" if where == path else f"in {where}"
        image, number = caption_key
        raise DataError(
            f"caption {number} of image {image} is '{caption}' here and '{before}' {elsewhere}; keep one of them"
        )
