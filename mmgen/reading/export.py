"""Data sets written in the formats that others are published in: the contract of those who write one."""

from __future__ import annotations

import abc
import json
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
    """A picture whose file is written. `boxes` are relative to its size, as those of `parts.Picture`."""

    file: str  # its name in the exporter's folder of pictures
    width: int
    height: int
    boxes: Sequence[Box] = ()
    labels: Sequence[str] = ()

    def pixels(self, box: Box) -> tuple[float, float, float, float]:
        """A box in pixels."""
        x0, y0, x1, y1 = box
        return x0 * self.width, y0 * self.height, x1 * self.width, y1 * self.height


@dataclass(frozen=True)
class Exported:
    """What is to be written: the examples of each split, what there is to choose from, pictures by key."""

    splits: Mapping[str, Sequence[Example]]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pictures: Mapping[str, ExportedPicture] = field(default_factory=dict)


class Exporter(abc.ABC):
    """Writes the files of one format. The config of the data set that reads them has it (`DatasetConfig.exporters`).

    name    what `mmgen data export --as` calls the format
    labels  names of the labels that examples must have
    images  the folder of pictures, below the one that is written
    """

    name: ClassVar[str]
    labels: ClassVar[tuple[str, ...]] = ()
    images: ClassVar[str] = "images"

    def config(self, config: DatasetConfig, split: str) -> DatasetConfig:
        """The config under which a data set has all of a split that is to be written."""
        return config.model_copy(update={"evaluate": split})

    @abc.abstractmethod
    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        """Writes into the folder, which has the pictures already. Returns the keys of a recipe's `[data]` that read
        what is written, but for `folder`. Raises DataError for what the format cannot say."""


def number_or_text(own: str) -> int | str:
    """An id as published files have it: a number where it is one."""
    return int(own) if own.isascii() and own.isdigit() and str(int(own)) == own else own


def save_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def save_json_lines(path: Path, rows: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def told(example: Example, field: str) -> str:
    """A text among an example's inputs. Raises DataError without."""
    value = example.inputs.get(field)
    if not isinstance(value, str):
        raise DataError(f"example '{example.id}' has no one text or key '{field}'; this format needs it")
    return value
