"""The learner of one step: runs an optimiser update, refuses bad losses, writes the log record and the checkpoint.

The loss of an update is the mean over all its predictions, however the update is split (see `accumulate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..errors import RunError
from ..model import EMBEDDERS, Model
from ..oom import ADVICE_SMALLER, as_run_error
from ..parts import Backbone
from ..recipe.tables import Training
from ..storage.weights import load_state, state
from ..tensors import Batch, Loss
from .accumulate import Accumulator, Losses, Material, Micros
from .checkpoint import Checkpoint, Cursor, Moments
from .context import StepContext
from .distributed import broadcast, gather_texts
from .optimizer import clip, make_optimizer, rates, schedule, set_learning
from .precision import precision

ScoreModel = Callable[[Model], Mapping[str, float | None]]  # in the main process: columns of the table -> values


def set_checkpointing_and_compile(backbone: Backbone, training: Training | None) -> None:
    """Recompute activations and compile layers as the settings say; None: neither."""
    backbone.set_gradient_checkpointing(training is not None and training.gradient_checkpointing)
    backbone.set_torch_compile(training is not None and training.torch_compile)


class Learner:
    """The training of one step: the model, its trainable parameters, and the progress.

    cursor    the progress, from the step's checkpoint if there is one
    scores    scores the present weights on the validation examples, for `training.metric_for_best_model`
    stopping  whether any process received a signal to stop
    """

    def __init__(
        self, model: Model, context: StepContext, material: Material, scores: ScoreModel | None = None
    ) -> None:
        self.model, self.context, self.material, self.scores = model, context, material, scores
        self.accelerator, self.plan = context.accelerator, material.plan
        self.stopping = False
        set_learning(model, context.step)
        set_checkpointing_and_compile(model.backbone, self.training)
        self.checkpoint = Checkpoint(context.folder)
        self.cursor, moments = self._read_checkpoint() if self.checkpoint.path.exists() else (Cursor(), {})
        broadcast(self.accelerator, list(state(model).values()))
        self.learning = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.optimizer = make_optimizer(self.learning, context.step)
        self._load_moments(moments)
        self.accumulator = Accumulator(context, material, self.cursor, self.loss, self.learning)

    @property
    def training(self) -> Training:
        return self.context.step.training

    def monitored(self, record: Mapping[str, Any]) -> float:
        """The value of a log record that says how good its weights are, lower is better: the validation loss or
        `metric_for_best_model`; inf for a record without a validation."""
        metric = self.training.metric_for_best_model
        if metric is None or "validation_loss" not in record:
            return float(record.get("validation_loss", math.inf))
        value = float(record["validation_scores"][metric])
        return -value if self.training.greater_is_better else value

    def loss(self, batch: Batch) -> Loss:
        """The losses of a batch on this process's device, in the step's precision."""
        with precision(self.training.precision, self.accelerator.device):
            loss: Loss = self.model(batch)
        return loss

    def update(self, number: int, micros: Micros, stop: Callable[[], bool] = bool) -> dict[str, Any]:
        """One optimiser update from this process's micro-batches. Returns its record for the log. `stop`: called after
        the passes; if it is true in any process, all processes stop after this update. Raises RunError."""
        share = schedule(self.plan, number, self.training)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * share
        with as_run_error(self._place_of_update(number), f"{ADVICE_SMALLER}; the last checkpoint is kept"):
            losses, means, self.stopping = self.accumulator.gradients(number, micros, stop)
            clipped = self._clip_and_step(number, losses, means.loss)
        record = {
            "update": number,
            "epoch": self.plan.epoch(number),
            "loss": means.loss,
            **({"losses": means.by_loss} if len(self.material.losses) > 1 else {}),
            **({"sources": means.by_source} if len(self.material.streams) > 1 else {}),
            **rates(self.optimizer),
            **clipped,
        }
        return record | ({"halved": self.cursor.halved} if self.cursor.halved else {})

    def _place_of_update(self, number: int) -> str:
        return f"step '{self.context.name}', update {number}"

    def _clip_and_step(self, number: int, losses: Losses, loss: float) -> dict[str, Any]:
        """Clip gradients and update the trainable parameters. Returns the gradients' part of the log record."""
        clipped = clip(self.learning.values(), self.training)
        if not math.isfinite(clipped["grad_norm"]) or not math.isfinite(loss):
            self._refuse_losses(number, losses, "gradient" if math.isfinite(loss) else "loss")
        with as_run_error(
            f"{self._place_of_update(number)}, the optimiser's state", "use a smaller encoder, or a larger device"
        ):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return clipped

    def _refuse_losses(self, number: int, losses: Losses, what: str) -> None:
        """Raises RunError with the examples whose loss is not finite, or else with all examples of the update."""
        bad = [id_ for batch, loss in losses if not loss.isfinite() for id_ in batch.ids]
        all_ids = gather_texts(self.accelerator, bad) or gather_texts(
            self.accelerator, [id_ for batch, _ in losses for id_ in batch.ids]
        )
        ids = list(dict.fromkeys(all_ids))
        shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
        suspects = [batch for batch, loss in losses if not loss.isfinite() or not bad]
        causes = [*gather_texts(self.accelerator, [cause for cause in map(self._cause, suspects) if cause]), ""]
        advice = f"check {'that part and ' if causes[0] else ''}the data of these examples with `mmgen data check`"
        if number:  # before any update, no learning rate is too high, and there is no checkpoint
            advice = f"lower learning_rate or {advice}; the last checkpoint is kept"
        raise RunError(
            f"{self._place_of_update(number)}: the {what} is not finite (examples {shown})"
            f"{f': {causes[0]}' if causes[0] else ''}; {advice}"
        )

    def _cause(self, batch: Batch) -> str:
        """The part that is not finite for a batch, or whose gradient is not; empty if another draw is finite."""
        with torch.no_grad(), precision(self.training.precision, self.accelerator.device):
            if cause := self.model.not_finite(batch):
                return cause
        for name in self.loss(batch).sums:
            self.optimizer.zero_grad(set_to_none=True)
            total = self.loss(batch).sums[name]
            if total.requires_grad:
                total.backward()
            gradients = [parameter.grad for parameter in self.learning.values() if parameter.grad is not None]
            if not all(gradient.isfinite().all() for gradient in gradients):
                return f"the gradient of the objective '{name.rpartition('.')[0]}' is not finite, but its loss is"
        return ""

    def save(self) -> None:
        """Write everything that a resume needs into one file, in the first process: trained weights, optimiser state,
        progress."""
        if not self.accelerator.is_main_process:
            return
        tensors = {f"model.{name}": tensor for name, tensor in self._trained_state().items()}
        for name, parameter in self.learning.items():
            for key, value in self.optimizer.state[parameter].items():
                tensors[f"optimizer.{key}.{name}"] = value
        self.checkpoint.write(tensors, self.cursor)

    def save_best(self) -> None:
        """Write the present weights next to the checkpoint, in the first process."""
        if self.accelerator.is_main_process:
            self.checkpoint.write_best(state(self.model))

    def _read_checkpoint(self) -> tuple[Cursor, Moments]:
        cursor, learnt, moments = self.checkpoint.read(len(self.plan))
        load_state(self.model, {**state(self.model), **learnt}, self.checkpoint.path)
        return cursor, moments

    def _load_moments(self, moments: Moments) -> None:
        """Load the optimiser's state."""
        for name, parameter in self.learning.items():
            for key, tensor in moments.get(name, {}).items():
                self.optimizer.state[parameter][key] = tensor.to(parameter.device)

    def _trained_state(self) -> dict[str, Tensor]:
        step = self.context.step
        saved = (
            step.train if step.weights is None else ["backbone", *step.inputs]
        )  # published weights are not read again
        parts = ["backbone." if part == "backbone" else f"{EMBEDDERS}{part}." for part in saved]
        heads = ["generator." if name == "generator" else f"objectives.{name}." for name in step.objectives]
        return {name: tensor for name, tensor in state(self.model).items() if name.startswith((*parts, *heads))}
