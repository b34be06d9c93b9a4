"""The files from which a step resumes (checkpoint, best weights, log) and its progress; they must fit together."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import RunError, regular
from ..files import write_text
from ..storage.weights import read_tensors, write_tensors

Moments = dict[str, dict[str, Tensor]]  # optimiser state: parameter's name -> kind -> tensor


@dataclass
class Cursor:
    """The progress of a step.

    done     updates that are finished
    best     the lowest validation loss so far
    halved   how often micro-batches were cut in two, for lack of memory
    records  the log, one record per update
    """

    done: int = 0
    best: float = math.inf
    halved: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def last(self) -> dict[str, Any]:
        return self.records[-1]

    def check(self, updates: int) -> None:
        """Raises ValueError unless the log has a record with numbers for every finished update, and `done` is at most
        `updates`."""
        are_ints = type(self.done) is int and type(self.halved) is int
        if not are_ints or not 0 <= self.done <= updates or not 0 <= self.halved < 64:
            raise ValueError(f"update {self.done} of {updates}, halved {self.halved}")
        numbered = [record["update"] for record in self.records] == list(range(self.done))
        if not numbered or not isinstance(self.best, int | float):
            raise ValueError(f"the log has no records of {self.done} updates in order")
        for record in self.records:
            numbers = [record["epoch"], record["loss"], record["grad_norm"], record.get("validation_loss") or 0.0]
            numbers.append(record.get("clipped", False))  # or a share
            if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
                raise ValueError(f"the record of update {record['update']} has values that are not numbers")


class Checkpoint:
    """A step's files during training.

    path  the trained weights, the optimiser's state, and the cursor
    best  all weights at the lowest validation loss
    log   one line of JSON per update
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.best = folder / "checkpoint.safetensors", folder / "best.safetensors"
        self.log = folder / "log.jsonl"

    def write(self, tensors: Mapping[str, Tensor], cursor: Cursor) -> None:
        """Write the log, then the checkpoint. `tensors`: weights as "model.NAME", moments as "optimizer.KIND.NAME"."""
        self.write_log(cursor)
        place = {
            "done": cursor.done,
            "best": cursor.best,
            "records": len(cursor.records),
            "halved": cursor.halved,
        }
        write_tensors(self.path, tensors, {"cursor": json.dumps(place)})

    def write_best(self, tensors: Mapping[str, Tensor]) -> None:
        write_tensors(self.best, tensors, {"format": "pt"})

    def write_log(self, cursor: Cursor) -> None:
        write_text(self.log, "".join(json.dumps(record) + "\n" for record in cursor.records))

    def read(self, updates: int) -> tuple[Cursor, dict[str, Tensor], Moments]:
        """The progress of a step with this number of updates, its trained weights, and its optimiser state. Raises
        RunError for files that are damaged or do not fit together."""
        tensors, about = read_tensors(self.path)
        try:
            place = json.loads(about["cursor"])
            lines = regular(self.log).read_text(encoding="utf-8").splitlines() if self.log.exists() else []
            records = [json.loads(line) for line in lines[: place["records"]]]
            cursor = Cursor(place["done"], place["best"], place["halved"], records)
            cursor.check(updates)
        except (OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunError(
                f"{self.path}: the checkpoint or log.jsonl is damaged: {reason}; delete the checkpoint to train the "
                "step again"
            ) from None
        learnt: dict[str, Tensor] = {}
        moments: Moments = {}
        for key, tensor in tensors.items():
            kind, _, name = key.partition(".")
            if kind == "model":
                learnt[name] = tensor
            elif kind == "optimizer":
                moment, _, name = name.partition(".")
                moments.setdefault(name, {})[moment] = tensor
        return cursor, learnt, moments

    def clear(self) -> None:
        """Delete the files that are not needed after the step's weights have their final name."""
        for spent in (self.path, self.best):
            spent.unlink(missing_ok=True)
