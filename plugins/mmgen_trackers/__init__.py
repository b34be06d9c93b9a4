"""Configs of trackers: a run's losses and scores in TensorBoard, W&B, Trackio or MLflow."""

import importlib.util
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

import mmgen
from mmgen.errors import install_extra


class Tracker(mmgen.CallbackConfig):
    """What all trackers have in common: one tracker run for each step, in which a resumed step goes on."""

    package: ClassVar[str]  # that does the work

    every: int = Field(1, ge=1, description="updates between two that are sent; ends of epochs always are")
    project: str = Field("", description="the project of the tracker; by default the recipe's name")

    def problem(self):
        if getattr(importlib.util.find_spec(self.package), "origin", None):  # a folder of this name has none
            return ""
        return f"the package '{self.package}' is not installed; {install_extra(self.type)}"

    def build(self):
        from .tracker import TrackerCallback

        return TrackerCallback(self)


class TensorBoard(Tracker):
    """Sends a run to TensorBoard: `tensorboard --logdir RUN/tensorboard`."""

    type: Literal["tensorboard"] = "tensorboard"
    package: ClassVar[str] = "tensorboard"

    folder: Path | None = Field(None, description="folder of the files; by default `tensorboard` in the run's folder")


class WandB(Tracker):
    """Sends a run to Weights & Biases, online or as WANDB_MODE says."""

    type: Literal["wandb"] = "wandb"
    package: ClassVar[str] = "wandb"


class Trackio(Tracker):
    """Sends a run to Trackio, a local database with a page."""

    type: Literal["trackio"] = "trackio"
    package: ClassVar[str] = "trackio"


class MLflow(Tracker):
    """Sends a run to MLflow, where MLFLOW_TRACKING_URI says."""

    type: Literal["mlflow"] = "mlflow"
    package: ClassVar[str] = "mlflow"


@mmgen.hookimpl
def register_callbacks():
    return [TensorBoard, WandB, Trackio, MLflow]
