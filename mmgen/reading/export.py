"""Exporters: the contract of parts that write a data set in a published format, its pictures and boxes; saves JSON."""

from __future__ import annotations

import abc
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ..configs import DatasetConfig
from ..errors import DataError
from ..tensors import Example

Box = Sequence[float]


@dataclass(frozen=True)
class ExportedPicture:
    """A picture whose file is written. `boxes` are relative to the picture's size, as in `parts.Picture`."""

    file: str  # name in the exporter's folder of pictures
    width: int
    height: int
    boxes: Sequence[Box] = ()
    region_names: Sequence[str] = ()

    def pixels(self, box: Box) -> tuple[float, float, float, float]:
        """A box in pixels."""
        x0, y0, x1, y1 = box
        return x0 * self.width, y0 * self.height, x1 * self.width, y1 * self.height


@dataclass(frozen=True)
class Exported:
    """The data to write: the examples of each split, the vocabularies, and the pictures by key."""

    splits: Mapping[str, Sequence[Example]]
    vocabularies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pictures: Mapping[str, ExportedPicture] = field(default_factory=dict)


class Exporter(abc.ABC):
    """Writes the files of one format. The config of the data set that reads them lists it (`DatasetConfig.exporters`).

    name             of the format in `mmgen data export --as`
    required_labels  names of the labels that examples must have
    images           the subfolder for pictures
    """

    name: ClassVar[str]
    required_labels: ClassVar[tuple[str, ...]] = ()
    images: ClassVar[str] = "images"

    def config(self, config: DatasetConfig, split: str) -> DatasetConfig:
        """The config that makes a data set load every example of the split."""
        return config.model_copy(update={"test_split": split})

    @abc.abstractmethod
    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        """Writes into the folder, where the pictures already are. Returns the keys of a recipe's `[data]` that read the
        written files, without `folder`. Raises DataError for what the format cannot express."""


def number_or_text(text: str) -> int | str:
    """An id as published files have it: a number if the text is one."""
    return int(text) if re.fullmatch("0|[1-9][0-9]{0,17}", text) else text


def save_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def save_json_lines(path: Path, rows: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def text_input(example: Example, field: str) -> str:
    """The text that an example has for a field. Raises DataError if the field has no single text."""
    value = example.inputs.get(field)
    if not isinstance(value, str):
        raise DataError(f"example '{example.id}' has no single text or key '{field}', which this format needs")
    return value
