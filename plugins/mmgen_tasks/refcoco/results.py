"""Result files of boxes for referring expressions, read and written; no published format exists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.results import ResultFiles
from mmgen.reading.text import image_id, read_items, read_list, require_keys, tidy

from ..results import add_row, prediction_of


class BoxResults(ResultFiles):
    """`[{"id": ..., "box": [x0, y0, x1, y1]}, ...]`; references have the right boxes. Both are relative to
    the picture's size, or both in pixels."""

    name = "boxes"
    key = "box"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        values: dict[str, Any] = {}

        def take(row: Any) -> None:
            require_keys(row, "id", self.key)
            add_row(values, image_id(row["id"], "id", plain=True), self.value(row[self.key]))

        read_items(read_list(path, "results", "results", bare=True)[1], path, "results", take)
        return values

    def value(self, row_value: Any) -> Any:
        """A prediction's value, from the value of a row."""
        return {"box": four_numbers(row_value)}

    def read_references(self, path: Path) -> list[Example]:
        examples: dict[str, Example] = {}

        def take(row: Any) -> None:
            require_keys(row, "id", "box")
            example_id, image = image_id(row["id"], "id", plain=True), row.get("image")
            facts = {"image": image_id(image, "image")} if image is not None else {}
            if row.get("type") is not None:
                facts["type"] = tidy(row["type"], "type")
            add_row(
                examples, example_id, Example(example_id, {}, (), facts, self.labels(tuple(four_numbers(row["box"]))))
            )

        read_items(read_list(path, "references", "references", bare=True)[1], path, "references", take)
        return [*examples.values()]

    def labels(self, box: tuple[float, ...]) -> dict[str, Any]:
        """An example's labels, from the right box."""
        return {"box": box}

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        rows = [{"id": example.id, self.key: self.row_value(prediction_of(values, example.id))} for example in examples]
        return json.dumps(rows) + "\n"

    def row_value(self, value: Any) -> Any:
        """The value of a row, from a prediction's value."""
        return four_numbers(value.get("box") if isinstance(value, Mapping) else None)


def four_numbers(value: Any) -> list[float]:
    """A box. Raises DataError."""
    has_length = isinstance(value, list | tuple) and len(value) == 4
    if not has_length or not all(
        isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < 1e9 for number in value
    ):
        raise DataError(f"a box must be four numbers, [x0, y0, x1, y1], not {value!r:.60}")
    return [float(number) for number in value]
