"""Result files of boxes, of referring expressions: nobody has published a form for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.results import ResultFiles
from mmgen.reading.text import image_id, read_items, read_list, require_keys, tidy
from mmgen.tensors import Example

from ..results import prediction_of, put


class BoxResults(ResultFiles):
    """`[{"id": ..., "box": [x0, y0, x1, y1]}, ...]`; references are the same, of the right boxes. Both are relative to
    the picture's size, or both in pixels."""

    name = "boxes"
    key = "box"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def take(row: Any) -> None:
            require_keys(row, "id", self.key)
            put(found, image_id(row["id"], "id", plain=True), self.value(row[self.key]))

        read_items(read_list(path, "results", "results", bare=True)[1], path, "results", take)
        return found

    def value(self, told: Any) -> Any:
        """A prediction's value, of what a row says."""
        return {"box": four_numbers(told)}

    def read_references(self, path: Path) -> list[Example]:
        found: dict[str, Example] = {}

        def take(row: Any) -> None:
            require_keys(row, "id", "box")
            own, image = image_id(row["id"], "id", plain=True), row.get("image")
            facts = {"image": image_id(image, "image")} if image is not None else {}
            if row.get("type") is not None:
                facts["type"] = tidy(row["type"], "type")
            put(found, own, Example(own, {}, (), facts, self.labels(tuple(four_numbers(row["box"])))))

        read_items(read_list(path, "references", "references", bare=True)[1], path, "references", take)
        return [*found.values()]

    def labels(self, box: tuple[float, ...]) -> dict[str, Any]:
        """An example's labels, of the right box."""
        return {"box": box}

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        rows = [{"id": one.id, self.key: self.told(prediction_of(values, one.id))} for one in examples]
        return json.dumps(rows) + "\n"

    def told(self, value: Any) -> Any:
        """What a row says, of a prediction's value."""
        return four_numbers(value.get("box") if isinstance(value, Mapping) else None)


def four_numbers(value: Any) -> list[float]:
    good = isinstance(value, list | tuple) and len(value) == 4
    if not good or not all(
        isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < 1e9 for one in value
    ):
        raise DataError(f"a box is four numbers, [x0, y0, x1, y1], and this is {value!r:.60}")
    return [float(one) for one in value]
