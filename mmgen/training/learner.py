"""The learner of one step: runs an optimiser update, refuses bad losses, writes the log record and the checkpoint.

The loss of an update is the mean over all its predictions, however the update is split (see `accumulate`).

With `training.shard` processes hold slices of the weights (see `fsdp`); files hold full weights, and are the same.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from ..errors import RunError
from ..model import EMBEDDERS, Gradients, Model
from ..objectives import BatchObjective
from ..oom import ADVICE_SMALLER, as_run_error
from ..parts import Backbone
from ..recipe.tables import Training
from ..storage.weights import load_state, state
from ..tensors import Batch, Loss
from .accumulate import Accumulator, Losses, Material, Micros
from .checkpoint import Checkpoint, Cursor, Moments
from .context import StepContext
from .distributed import broadcast, gather_texts
from .fsdp import Sharded, shards
from .optimizer import clip, make_optimizer, rates, schedule, set_learning
from .precision import precision
from .whole_batch import WholeBatch

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
        sharded = shards(self.training, self.accelerator)
        self.sharded = Sharded(model, self.accelerator, self.training) if sharded else None
        parameters = self.sharded.parameters if self.sharded else dict(model.named_parameters())
        self.learning = {name: p for name, p in parameters.items() if p.requires_grad}
        self.optimizer = make_optimizer(self.learning, context.step)
        self._load_moments(moments)
        self.whole_batch = self._whole_batch()
        self.accumulator = Accumulator(
            context, material, self.cursor, self.loss, self.learning, sharded, self.whole_batch
        )

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

    def loss(self, batch: Batch, through: Gradients | None = None) -> Loss:
        """The losses of a batch on this process's device, in the step's precision. `through`: see `Model.forward`."""
        with self._autocast():
            if self.sharded:
                return self.sharded.loss(batch)
            return self.model(batch) if through is None else self.model(batch, through)

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        return precision(self.training.precision, self.accelerator.device)

    def _whole_batch(self) -> WholeBatch | None:
        """The step's objectives that compare the rows of a whole batch; None if no objective does."""
        model, weights = self.model, dict[str, float]()
        for name in self.context.step.objectives:
            if isinstance(objective := model.objective(name), BatchObjective):
                weights |= {f"{name}.{loss}": model.weights.get(name, 1.0) for loss in objective.reader.losses}

        def features(batch: Batch) -> Mapping[str, Mapping[str, Tensor]]:
            with self._autocast():
                return model.features(batch)

        def compare(name: str, rows: Mapping[str, Tensor]) -> Loss:
            with self._autocast():
                return model.compare(name, rows)

        return WholeBatch(features, compare, weights) if weights else None

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
        raise RunError(
            f"{self._place_of_update(number)}: the {what} is not finite (examples {shown}); lower learning_rate or "
            "check the data of these examples with `mmgen data check`; the last checkpoint is kept"
        )

    def save(self) -> None:
        """Write everything that a resume needs into one file: trained weights, optimiser state, progress. All processes
        call it; the first one writes."""
        tensors = {f"model.{name}": tensor for name, tensor in self._trained_state().items()}
        for name, parameter in self.learning.items():
            for key, value in self.optimizer.state[parameter].items():
                tensors[f"optimizer.{key}.{name}"] = value
        gathered = self._gather_slices(tensors)
        if self.accelerator.is_main_process:
            self.checkpoint.write(gathered, self.cursor)

    def save_best(self) -> None:
        """Write the present weights next to the checkpoint. All processes call it; the first one writes."""
        gathered = self._gather_slices(self._named_tensors())
        if self.accelerator.is_main_process:
            self.checkpoint.write_best(gathered)

    def _gather_slices(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return self.sharded.gather(tensors) if self.sharded else tensors

    def _read_checkpoint(self) -> tuple[Cursor, Moments]:
        cursor, learnt, moments = self.checkpoint.read(len(self.plan))
        load_state(self.model, {**state(self.model), **learnt}, self.checkpoint.path)
        return cursor, moments

    def _load_moments(self, moments: Moments) -> None:
        """Load the optimiser's state."""
        for name, parameter in self.learning.items():
            for key, tensor in moments.get(name, {}).items():
                self.optimizer.state[parameter][key] = (
                    self.sharded.cut(tensor, name) if self.sharded else tensor.to(parameter.device)
                )

    def _trained_state(self) -> dict[str, Tensor]:
        step = self.context.step
        parts = ["backbone." if part == "backbone" else f"{EMBEDDERS}{part}." for part in step.train]
        heads = ["generator." if name == "generator" else f"objectives.{name}." for name in step.objectives]
        return {name: tensor for name, tensor in self._named_tensors().items() if name.startswith((*parts, *heads))}

    def _named_tensors(self) -> dict[str, Tensor]:
        return self.sharded.state() if self.sharded else state(self.model)
