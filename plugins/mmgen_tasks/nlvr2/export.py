"""Writes NLVR2's format: JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmgen_vl.truths import LABELS

from mmgen.errors import DataError
from mmgen.reading.export import (
    Exported,
    Exporter,
    save_json_lines,
    text_input,
)

from ..export import split_roles
from .files import pictures_of

DEV = {"val": "dev", "test": "test1"}  # our names of splits -> NLVR2's


class Nlvr2(Exporter):
    """JSON lines. Examples and pictures must have NLVR2's ids."""

    name = "nlvr2"
    required_labels = ("truth",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        for split, examples in exported.splits.items():
            rows = []
            for example in examples:
                if example.shown("image") != pictures_of(example.id):
                    raise DataError(
                        f"example '{example.id}': the id must be split-set-pair-sentence, and its pictures' names "
                        "split-set-pair-img0 and -img1"
                    )
                row = {"identifier": example.id, "sentence": text_input(example, "statement")}
                rows.append(row | {"label": LABELS[example.labels["truth"]]})
            save_json_lines(folder / f"{DEV.get(split, split)}.json", rows)
        return {"type": "nlvr2", **split_roles([*exported.splits], DEV)}
