"""NLVR2's format written: JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.export import (
    Exported,
    Exporter,
    save_json_lines,
    text_input,
)

from ..export import named
from .files import pictures_of

DEV = {"val": "dev", "test": "test1"}  # our names of splits -> NLVR2's


class Nlvr2(Exporter):
    """JSON lines. An example's id and pictures must be named as NLVR2 names them."""

    name = "nlvr2"
    labels = ("truth",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        for split, examples in exported.splits.items():
            rows = []
            for example in examples:
                if example.shown("image") != pictures_of(example.id):
                    raise DataError(
                        f"example '{example.id}': NLVR2's ids are split-set-pair-sentence, and its pictures "
                        "split-set-pair-img0 and -img1"
                    )
                row = {"identifier": example.id, "sentence": text_input(example, "statement")}
                rows.append(row | {"label": str(example.labels["truth"])})
            save_json_lines(folder / f"{DEV.get(split, split)}.json", rows)
        return {"type": "nlvr2", **named([*exported.splits], DEV)}
