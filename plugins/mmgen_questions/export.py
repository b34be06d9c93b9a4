"""Writes questions in the published formats: VQG's tables, with captions in COCO's format."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from mmgen_vl.coco import CAPTIONS, YEARS, save_captions

from mmgen.errors import DataError
from mmgen.reading.export import Exported, Exporter, text_input

from .columns import BETWEEN, VQG_HEADER
from .published_sets import VQG_TABLE

PICTURED = "train"  # all of VQG's pictures are from this split of COCO


class VqgTables(Exporter):
    """VQG_COCO's tables, one row per picture, and the captions of all splits in COCO's format. The reader puts the
    split before an example's id."""

    name = "vqg"

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        for split, examples in exported.splits.items():
            text = io.StringIO(newline="")
            rows = csv.writer(text, lineterminator="\n")
            rows.writerow(VQG_HEADER)
            seen: set[str] = set()
            for example in examples:
                key = text_input(example, "image")
                if key in seen or not example.targets or any(BETWEEN in question for question in example.targets):
                    raise DataError(
                        f"example '{example.id}': VQG needs one example per picture, with at least one question, and "
                        f"no {BETWEEN} in questions"
                    )
                seen.add(key)
                rows.writerow((key, exported.pictures[key].file, BETWEEN.join(example.targets)))
            table = folder / VQG_TABLE.format(source="coco", split=split)
            table.write_text(text.getvalue(), encoding="utf-8", newline="")
        all_examples = [example for examples in exported.splits.values() for example in examples]
        written = save_captions(folder / CAPTIONS.format(year=YEARS[PICTURED]), all_examples, exported)
        return {"type": "vqg", **({} if written else {"caption_files": []})}
