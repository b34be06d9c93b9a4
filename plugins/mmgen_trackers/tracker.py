"""The callback of all trackers, over the tracker classes of accelerate: what it sends at each event of a run.

accelerate's `Accelerator.log` skips a tracker whose package is missing, and `end_training` ends the process group,
which a run needs for its next step.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker

from mmgen.errors import DataError
from mmgen.files import read_table, write_json
from mmgen.parts import Callback, RunInfo

from . import Tracker

LONGEST = 500  # characters of a setting; MLflow refuses longer ones


class TrackerCallback(Callback):
    """Opens a tracker run for each step. The ids are kept in the run's folder, `trackers/NAME.json`, so that a resumed
    step goes on in the same tracker run."""

    def __init__(self, config: Tracker) -> None:
        if problem := config.problem():
            raise DataError(problem)
        self.config = config
        self.trackers: dict[str, GeneralTracker] = {}  # of the steps that train
        self.last: dict[str, int] = {}  # update of a step's last values; trackers want increasing ones

    def on_run_begin(self, run: RunInfo) -> None:
        self.info = run

    def on_step_begin(self, step: str, done: int, updates: int) -> None:
        self._open_tracker(step, done)

    def on_update(self, step: str, record: Mapping[str, Any]) -> None:
        if record["update"] % self.config.every == 0:
            self._log_numbers(step, record, record["update"])

    def on_epoch_end(self, step: str, record: Mapping[str, Any]) -> None:
        new = ("validation_", "epoch_") if record["update"] % self.config.every == 0 else ("",)
        self._log_numbers(step, {key: value for key, value in record.items() if key.startswith(new)}, record["update"])

    def on_step_end(self, step: str, scores: Mapping[str, float | None]) -> None:
        if step not in self.trackers:  # an earlier session has trained it
            self._open_tracker(step, None)
        self._log_numbers(step, {"score": scores}, self.last.get(step, 0))
        self.trackers.pop(step).finish()

    def close(self) -> None:
        for tracker in self.trackers.values():
            tracker.finish()
        self.trackers.clear()

    def _open_tracker(self, step: str, done: int | None) -> GeneralTracker:
        """Start the tracker run of a step, or go on in it. `done`: updates before those that follow; None if none
        follows."""
        path = self.info.folder / "trackers" / f"{self.config.type}.json"
        ids = read_table(path) if path.exists() else {}
        tracker = self.trackers[step] = self._tracker(step, ids.get(step), done)
        tracker.start()
        if step not in ids:
            kind, wrapped = self.config.type, tracker.tracker
            id_ = wrapped.id if kind == "wandb" else wrapped.info.run_id if kind == "mlflow" else step
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {**ids, step: id_})
            tracker.store_init_configuration(dict(_flatten(self.info.recipe, ".")))
        return tracker

    def _tracker(self, step: str, id_: str | None, done: int | None) -> GeneralTracker:
        """accelerate's tracker. `id_`: of the tracker run to go on in."""
        name = "-".join([self.info.name, self.info.profile, f"seed{self.info.seed}", step])
        place: Any = self.config.project or self.info.name
        options: dict[str, Any]
        match self.config.type:
            case "tensorboard":  # purges the values of updates that a resumed step repeats
                folder = getattr(self.config, "folder", None) or self.info.folder / "tensorboard"
                place, options = (
                    name,
                    {"logging_dir": folder, **({"purge_step": done} if id_ and done is not None else {})},
                )
            case "wandb":  # ignores values of updates before its last one
                options = {"name": name, "id": id_, "resume": "allow", "reinit": True}
            case "trackio":  # finds the runs of a project by name
                options = {"name": name, "resume": "allow" if id_ else "never"}
            case _:
                options = {"run_id": id_, "run_name": None if id_ else name}
        tracker: GeneralTracker = LOGGER_TYPE_TO_CLASS[self.config.type](place, **options)
        return tracker

    def _log_numbers(self, step: str, values: Mapping[str, Any], update: int) -> None:
        numbers = {
            re.sub(r"[^\w./ -]", "_", name): float(value)
            for name, value in _flatten(values, "/")
            if isinstance(value, int | float) and name != "update"
        }
        if numbers:
            self.last[step] = update
            self.trackers[step].log(numbers, step=update)


def _flatten(table: Mapping[str, Any], separator: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables by path ("training.batch_size"): numbers, and texts for everything else."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, separator, f"{prefix}{name}{separator}")
        elif isinstance(value, bool) or (isinstance(value, int | float) and math.isfinite(value)):
            yield f"{prefix}{name}", value
        elif value is not None:
            yield f"{prefix}{name}", str(value)[:LONGEST]
