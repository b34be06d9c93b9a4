"""Write region features in the format of bottom-up attention (Anderson et al., 2018): a line per image, arrays as
base64."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..parts import Record


def write_tsv(path: Path, records: Iterable[Record], sizes: Mapping[str, tuple[int, int]]) -> int:
    """Write image_id, image_w, image_h, num_boxes, boxes in pixels and features of each record whose key has a size
    (width, height). Returns the number of lines. Raises DataError for a record without boxes."""
    count = 0
    with path.open("w", encoding="ascii") as file:
        for record in records:
            if record.key not in sizes:
                continue
            if record.boxes is None:
                raise DataError(f"the features of image '{record.key}' have no boxes, which this format requires")
            width, height = sizes[record.key]
            boxes = np.asarray(record.boxes, np.float64) * [width, height, width, height]
            columns = (record.key, width, height, len(boxes), _base64(boxes), _base64(record.features))
            file.write("\t".join(map(str, columns)) + "\n")
            count += 1
    return count


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values, "<f4").tobytes()).decode("ascii")
