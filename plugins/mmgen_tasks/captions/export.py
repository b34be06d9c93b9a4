"""The exporter of COCO's captions: a file per split, in the format of `mmgen_vl.coco`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmgen_vl.coco import CAPTIONS, YEARS, save_captions

from mmgen.errors import DataError
from mmgen.reading.export import (
    Exported,
    Exporter,
)

from ..export import split_roles


class CocoCaptions(Exporter):
    """Captions in COCO's format, one file per split. The reader puts the split before an image's number."""

    name = "coco_captions"

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        files = {}
        for split, examples in exported.splits.items():
            path = folder / "annotations" / CAPTIONS.format(year=YEARS.get(split, split))
            if not save_captions(path, examples, exported):
                raise DataError(f"the split '{split}' has no captions")
            files[split] = [path.relative_to(folder).as_posix()]
        return {"type": "coco_captions", "files": files, **split_roles([*exported.splits], {})}
