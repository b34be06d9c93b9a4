"""How the services differ: how a tracker run is opened and opened again, and what can be shown besides numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelerate.tracking import GeneralTracker, MLflowTracker, TensorBoardTracker, TrackioTracker, WandBTracker


@dataclass(frozen=True)
class Opening:
    """The tracker run to open.

    id_     of a run that goes on; None for a new one
    done    updates before those that follow; None if none follows
    folder  for services that write files
    """

    project: str
    name: str
    id_: str | None
    done: int | None
    folder: Path


class Service:
    """A service that keeps numbers and settings alone."""

    def open(self, opening: Opening) -> GeneralTracker:
        """The tracker of a run, before its `start`."""
        raise NotImplementedError

    def configure(self, tracker: GeneralTracker, settings: Mapping[str, Any]) -> None:
        """Note the settings of a new run: numbers and texts by path."""
        tracker.store_init_configuration(dict(settings))

    def id_of(self, tracker: GeneralTracker, name: str) -> str:
        """The id of a tracker run that has started."""
        return name

    def text(self, tracker: GeneralTracker, name: str, text: str, update: int) -> None:
        """Show a text, where the service can."""


class TensorBoardService(Service):
    """A folder of event files. Values of updates that a resumed step repeats are purged."""

    def open(self, opening: Opening) -> GeneralTracker:
        purges = {"purge_step": opening.done} if opening.id_ and opening.done is not None else {}
        return TensorBoardTracker(opening.name, opening.folder, **purges)

    def configure(self, tracker: GeneralTracker, settings: Mapping[str, Any]) -> None:
        super().configure(tracker, settings)  # its table shows only runs that name metrics
        self.text(tracker, "recipe", "\n".join(f"    {name} = {value}" for name, value in settings.items()), 0)

    def text(self, tracker: GeneralTracker, name: str, text: str, update: int) -> None:
        tracker.log({name: text}, step=update)


class WandBService(Service):
    """W&B ignores values of updates before its last one: a resumed step repeats equal values."""

    def open(self, opening: Opening) -> GeneralTracker:
        return WandBTracker(opening.project, name=opening.name, id=opening.id_, resume="allow", reinit=True)

    def id_of(self, tracker: GeneralTracker, name: str) -> str:
        return str(tracker.tracker.id)

    def text(self, tracker: GeneralTracker, name: str, text: str, update: int) -> None:
        tracker.log_table(name, columns=["text"], data=[[text]], step=update)


class TrackioService(Service):
    """Runs of a project are found by name."""

    def open(self, opening: Opening) -> GeneralTracker:
        return TrackioTracker(opening.project, name=opening.name, resume="allow" if opening.id_ else "never")


class MLflowService(Service):
    """MLflow keeps texts as files of a run."""

    def open(self, opening: Opening) -> GeneralTracker:
        return MLflowTracker(opening.project, run_id=opening.id_, run_name=None if opening.id_ else opening.name)

    def id_of(self, tracker: GeneralTracker, name: str) -> str:
        return str(tracker.tracker.info.run_id)

    def text(self, tracker: GeneralTracker, name: str, text: str, update: int) -> None:
        import mlflow

        mlflow.log_text(text, f"{name}-{update}.txt")


SERVICES = {
    "tensorboard": TensorBoardService(),
    "wandb": WandBService(),
    "trackio": TrackioService(),
    "mlflow": MLflowService(),
}
