"""Reads files of COCO's captions; COCO's names of splits in file names."""

from __future__ import annotations

from collections.abc import Iterable

from mmgen.reading.rows import Id, Key, Line, Row

CAPTIONS = "captions_{year}.json"
YEARS = {"train": "train2014", "val": "val2014", "test": "test2015", "test_dev": "test-dev2015"}  # in names of files
WHERE = "annotations_trainval2014.zip (241 MB) of cocodataset.org/#download"


class CaptionRow(Row):
    """A row of the list `annotations`."""

    image_id: Key
    caption: Line
    id: Id | None = None


def join_captions(rows: Iterable[tuple[str, CaptionRow]]) -> tuple[dict[str, list[str]], list[str]]:
    """The captions of rows by image, in the order of the files, and for each caption that is left out why: it is empty,
    or its image has one with this id."""
    captions, left_out, seen = dict[str, list[str]](), list[str](), set[tuple[str, str]]()
    for _, row in rows:
        name = (row.image_id, row.id or "")
        if row.caption and not (row.id and name in seen):
            captions.setdefault(row.image_id, []).append(row.caption)
        else:
            left_out.append("repeated caption{s}" if row.caption else "empty caption{s}")
        seen.add(name)
    return captions, left_out
