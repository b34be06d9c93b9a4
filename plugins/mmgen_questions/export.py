"""Questions written as they are published: VQG's tables, with captions as COCO has them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from mmgen_vl.coco import CAPTIONS, YEARS, save_captions

from mmgen.errors import DataError
from mmgen.reading.export import Exported, Exporter, text_input

from .columns import BETWEEN

PICTURED = "train"  # VQG's pictures are all of this split of COCO


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
                key = text_input(example, "image")
                if key in seen or not example.targets or any(BETWEEN in question for question in example.targets):
                    raise DataError(
                        f"example '{example.id}': VQG has one row a picture, with questions that have no {BETWEEN}"
                    )
                seen.add(key)
                rows.writerow((key, exported.pictures[key].file, BETWEEN.join(example.targets)))
            (folder / f"coco_{split}_all.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
        every = [example for examples in exported.splits.values() for example in examples]
        written = save_captions(folder / CAPTIONS.format(year=YEARS[PICTURED]), every, exported)
        return {"type": "vqg", **({} if written else {"caption_files": []})}
