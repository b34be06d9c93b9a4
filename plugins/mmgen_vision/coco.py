"""Reads files of COCO's captions; COCO's names of splits in file names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mmgen.errors import DataError
from mmgen.reading.rows import Id, Key, Line, Row

CAPTIONS = "captions_{year}.json"
YEARS = {"train": "train2014", "val": "val2014", "test": "test2015", "test_dev": "test-dev2015"}  # in names of files
WHERE = "annotations_trainval2014.zip (241 MB) of cocodataset.org/#download"


class CaptionRow(Row):
    """A row of the list `annotations`."""

    image_id: Key
    caption: Line
    id: Id | None = None


class Captions(NamedTuple):
    """Captions by image, in the order of the files. `left_out`: why some are, for each of them."""

    of: dict[str, list[str]]
    left_out: list[str]


def join_captions(rows: Iterable[tuple[str, CaptionRow]]) -> Captions:
    """The captions of rows with their places. Duplicates of a caption (same image and id) must have the same text."""
    captions, seen = Captions({}, []), dict[tuple[str, str], str]()
    for place, row in rows:
        name = (row.image_id, row.id or "")
        if row.id and seen.get(name, row.caption) != row.caption:
            raise DataError(
                f"{place}: caption {row.id} of image {row.image_id} is '{row.caption}' here and '{seen[name]}' in an "
                "earlier row; keep one of them"
            )
        if row.caption and not (row.id and name in seen):
            captions.of.setdefault(row.image_id, []).append(row.caption)
        else:
            captions.left_out.append("repeated caption{s}" if row.caption else "empty caption{s}")
        seen[name] = row.caption
    return captions
