"""Questions and captions written as they are published: VQG's tables, COCO's captions."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.export import Exported, Exporter, number_or_text, save_json, told
from mmgen.tensors import Example

from .columns import BETWEEN

CAPTIONS = "captions_train2014.json"  # VQG's pictures are all of COCO's train2014
YEARS = {"train": "train2014", "val": "val2014", "test": "test2015"}


class VqgTables(Exporter):
    """VQG_COCO's tables, a picture a row, and the captions of all splits in COCO's format. Who reads them puts the
    split before an example's id."""

    name = "vqg"

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        for split, examples in exported.splits.items():
            text = io.StringIO(newline="")
            rows = csv.writer(text, lineterminator="\n")
            rows.writerow(("image_id", "image_url", "questions"))
            seen: set[str] = set()
            for example in examples:
                key = told(example, "image")
                if key in seen or not example.targets or any(BETWEEN in question for question in example.targets):
                    raise DataError(
                        f"example '{example.id}': VQG has one row a picture, with questions that have no {BETWEEN}"
                    )
                seen.add(key)
                rows.writerow((key, exported.pictures[key].file, BETWEEN.join(example.targets)))
            (folder / f"coco_{split}_all.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
        every = [example for examples in exported.splits.values() for example in examples]
        written = write_captions(folder / CAPTIONS, every, exported)
        return {"type": "vqg", **({} if written else {"caption_files": []})}


class CocoCaptions(Exporter):
    """Captions in COCO's format, a file a split."""

    name = "coco_captions"

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        files = []
        for split, examples in exported.splits.items():
            path = folder / "annotations" / f"captions_{YEARS.get(split, split)}.json"
            if not write_captions(path, examples, exported):
                raise DataError(f"the split '{split}' has no captions")
            files.append(path.relative_to(folder).as_posix())
        return {"caption_files": files}


def write_captions(path: Path, examples: Iterable[Example], exported: Exported) -> bool:
    """Whether there are any."""
    images: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for key, captions in _captions(examples).items():
        picture = exported.pictures[key]
        size = {"width": picture.width, "height": picture.height}
        images.append({"id": number_or_text(key), "file_name": picture.file, **size})
        for caption in captions:
            rows.append({"id": len(rows) + 1, "image_id": number_or_text(key), "caption": caption})
    if rows:
        save_json(path, {"images": images, "annotations": rows})
    return bool(rows)


def _captions(examples: Iterable[Example]) -> dict[str, dict[str, None]]:
    """The captions of each picture, in their order."""
    found: dict[str, dict[str, None]] = {}
    for example in examples:
        captions = example.inputs.get("caption", ())
        several = (captions,) if isinstance(captions, str) else captions
        found.setdefault(told(example, "image"), {}).update(dict.fromkeys(several))
    return {key: captions for key, captions in found.items() if captions}
