"""The learner of one step: its optimiser updates, and where it goes on from.

The loss of an update is the mean over all that it predicts, however it is split (see `accumulate`).

With `training.shard` processes hold slices of the weights (see `fsdp`); files hold them whole, and are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from ..errors import RunError
from ..model import Model
from ..oom import ADVICE_SMALLER, as_run_error
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


class Learner:
    """One step being learnt: the model, what of it learns, and how far it is.

    cursor    how far it is; read from the step's checkpoint where there is one
    stopping  whether any process was asked to stop
    """

    def __init__(self, model: Model, context: StepContext, material: Material) -> None:
        self.model, self.context, self.material = model, context, material
        self.accelerator, self.plan = context.accelerator, material.plan
        self.stopping = False
        set_learning(model, context.step)
        self.checkpoint = Checkpoint(context.folder)
        self.cursor, moments = self._resume() if self.checkpoint.path.exists() else (Cursor(), {})
        broadcast(self.accelerator, list(state(model).values()))
        sharded = shards(self.training, self.accelerator)
        self.sharded = Sharded(model, self.accelerator, self.training) if sharded else None
        parameters = self.sharded.parameters if self.sharded else dict(model.named_parameters())
        self.learning = {name: p for name, p in parameters.items() if p.requires_grad}
        self.optimizer = make_optimizer(self.learning, context.step)
        self._remember(moments)
        self.accumulator = Accumulator(context, material, self.cursor, self.loss, self.learning, sharded)

    @property
    def training(self) -> Training:
        return self.context.step.training

    def loss(self, batch: Batch) -> Loss:
        """The losses of a batch on this process's device, in the step's precision."""
        with precision(self.training.precision, self.accelerator.device):
            return self.sharded.loss(batch) if self.sharded else self.model(batch)

    def update(self, number: int, micros: Micros, stop: Callable[[], bool] = bool) -> dict[str, Any]:
        """One optimiser update from this process's micro-batches; what the log says of it. `stop`: asked behind the
        passes, whether all processes shall stop after it. Raises RunError."""
        share = schedule(self.plan, number, self.training)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * share
        with as_run_error(self._where(number), f"{ADVICE_SMALLER}; the last checkpoint is kept"):
            losses, means, self.stopping = self.accumulator.gradients(number, micros, stop)
            clipped = self._step(number, losses, means.loss)
        record = {
            "update": number,
            "epoch": self.plan.epoch(number),
            "loss": means.loss,
            **({"losses": means.each} if len(self.material.losses) > 1 else {}),
            **({"sources": means.by_source} if len(self.material.pools) > 1 else {}),
            **rates(self.optimizer),
            **clipped,
        }
        return record | ({"halved": self.cursor.halved} if self.cursor.halved else {})

    def _where(self, number: int) -> str:
        return f"step '{self.context.name}', update {number}"

    def _step(self, number: int, losses: Losses, loss: float) -> dict[str, Any]:
        """One update of what learns; what the log says of its gradients."""
        clipped = clip(self.learning.values(), self.training)
        if not math.isfinite(clipped["grad_norm"]) or not math.isfinite(loss):
            self._refuse(number, losses, "gradient" if math.isfinite(loss) else "loss")
        with as_run_error(
            f"{self._where(number)}, the optimiser's own state", "use a smaller encoder, or a larger device"
        ):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return clipped

    def _refuse(self, number: int, losses: Losses, what: str) -> None:
        """Raises RunError, naming the examples whose own loss is not finite, or else all of the update's."""
        bad = [id_ for batch, loss in losses if not loss.isfinite() for id_ in batch.ids]
        found = gather_texts(self.accelerator, bad) or gather_texts(
            self.accelerator, [id_ for batch, _ in losses for id_ in batch.ids]
        )
        ids = list(dict.fromkeys(found))
        shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
        raise RunError(
            f"{self._where(number)}: the {what} is not finite (examples {shown}); lower learning_rate or "
            "look at their features with `mmgen data check`; the last checkpoint is kept"
        )

    def save(self) -> None:
        """Everything that a resume needs, in one file: what has been learnt, the optimiser, how far it is. All
        processes call it, and the first one writes."""
        tensors = {f"model.{name}": tensor for name, tensor in self._learnt().items()}
        for name, parameter in self.learning.items():
            for key, value in self.optimizer.state[parameter].items():
                tensors[f"optimizer.{key}.{name}"] = value
        whole = self._gathered(tensors)
        if self.accelerator.is_main_process:
            self.checkpoint.write(whole, self.cursor)

    def save_best(self) -> None:
        """The weights as they are now, beside the checkpoint; all processes call it, and the first one writes."""
        whole = self._gathered(self._state())
        if self.accelerator.is_main_process:
            self.checkpoint.write_best(whole)

    def _gathered(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return self.sharded.gather(tensors) if self.sharded else tensors

    def _resume(self) -> tuple[Cursor, Moments]:
        cursor, learnt, moments = self.checkpoint.read(len(self.plan))
        load_state(self.model, {**state(self.model), **learnt}, self.checkpoint.path)
        return cursor, moments

    def _remember(self, moments: Moments) -> None:
        """Hand the optimiser what it kept."""
        for name, parameter in self.learning.items():
            for key, tensor in moments.get(name, {}).items():
                self.optimizer.state[parameter][key] = (
                    self.sharded.cut(tensor, name) if self.sharded else tensor.to(parameter.device)
                )

    def _learnt(self) -> dict[str, Tensor]:
        step = self.context.step
        parts = ["backbone." if part == "backbone" else f"embedders.{part}." for part in step.train]
        heads = ["generator." if name == "generator" else f"objectives.{name}." for name in step.objectives]
        return {name: tensor for name, tensor in self._state().items() if name.startswith((*parts, *heads))}

    def _state(self) -> dict[str, Tensor]:
        return self.sharded.state() if self.sharded else state(self.model)
