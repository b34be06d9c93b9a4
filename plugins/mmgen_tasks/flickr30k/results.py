"""Result files of phrases' boxes, read and written; no published format exists."""

from __future__ import annotations

from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import kind

from ..refcoco.results import BoxResults, four_numbers


class PhraseResults(BoxResults):
    """`[{"id": ..., "boxes": [[x0, y0, x1, y1], ...]}, ...]`, one row per phrase, the likeliest box first; references
    have the right box, `"box"`, and may have the phrase's `"type"`."""

    name = "phrases"
    key = "boxes"

    def value(self, row_value: Any) -> Any:
        if not isinstance(row_value, list):
            raise DataError(f"boxes must be a list of boxes, not {kind(row_value)}")
        return [four_numbers(box) for box in row_value]

    def labels(self, box: tuple[float, ...]) -> dict[str, Any]:
        return {"phrases": ((0, 0, box),)}

    def row_value(self, value: Any) -> Any:
        return self.value(value)
