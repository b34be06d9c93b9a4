"""The files from which a step resumes (checkpoint, best weights, log) and its progress; they must fit together."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import RunError
from ..storage.weights import read_tensors, write_tensors


@dataclass
class Cursor:
    """The progress of a step.

    micro_batch_size  in pairs; it is halved when memory runs out
    records           the log, one record per update
    """

    micro_batch_size: int
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def done(self) -> int:
        """How many updates are finished."""
        return len(self.records)


class Checkpoint:
    """A step's files during training.

    path  all weights, the optimiser's state, and the progress
    best  all weights of the best epoch
    log   one line of JSON per update
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.best = folder / "checkpoint.safetensors", folder / "best.safetensors"
        self.log = folder / "log.jsonl"
        self._logged = 0  # records in the log

    def write(self, tensors: Mapping[str, Tensor], cursor: Cursor) -> None:
        """Write the log, then the checkpoint."""
        self.write_log(cursor)
        place = {"micro_batch_size": cursor.micro_batch_size, "done": cursor.done}
        write_tensors(self.path, tensors, {"cursor": json.dumps(place)})

    def write_log(self, cursor: Cursor) -> None:
        """Append the new records."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a" if self._logged else "w") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in cursor.records[self._logged :])
            file.flush()
            os.fsync(file.fileno())  # the checkpoint needs its records
        self._logged = cursor.done

    def read(self, updates: int) -> tuple[Cursor, dict[str, Tensor]]:
        """The progress of a step with this number of updates, and the checkpoint's tensors. What an earlier session has
        logged beyond its checkpoint is cut off. Raises RunError for files that do not fit together."""
        tensors, about = read_tensors(self.path)
        try:
            place = json.loads(about["cursor"])
            lines = self.log.read_bytes().splitlines(keepends=True)[: place["done"]]
            cursor = Cursor(place["micro_batch_size"], [*map(json.loads, lines)])
            if not cursor.done == place["done"] <= updates:
                raise ValueError(f"{cursor.done} records of {place['done']} updates, of {updates} in all")
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise RunError(
                f"{self.path}: the checkpoint does not fit log.jsonl: {error}; delete it to train the step again"
            ) from None
        os.truncate(self.log, sum(map(len, lines)))
        self._logged = cursor.done
        return cursor, tensors

    def clear(self) -> None:
        """Delete the files that are not needed after the step's weights have their final name."""
        for spent in (self.path, self.best):
            spent.unlink(missing_ok=True)
