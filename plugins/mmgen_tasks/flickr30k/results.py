"""Result files of phrases' boxes: nobody has published a form for them."""

from __future__ import annotations

from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import kind

from ..refcoco.results import BoxResults, four_numbers


class PhraseResults(BoxResults):
    """`[{"id": ..., "boxes": [[x0, y0, x1, y1], ...]}, ...]`, a phrase each, the likeliest box first; references have
    the one right box, `"box"`, and may have the phrase's `"type"`."""

    name = "phrases"
    key = "boxes"

    def value(self, told: Any) -> Any:
        if not isinstance(told, list):
            raise DataError(f"boxes must be a list of boxes, and is {kind(told)}")
        return [four_numbers(box) for box in told]

    def labels(self, box: tuple[float, ...]) -> dict[str, Any]:
        return {"phrases": ((0, 0, box),)}

    def told(self, value: Any) -> Any:
        return self.value(value)
