"""Train a step from its start or its last checkpoint: its data, updates, ends of epochs, when to save, when to stop.

Ctrl-C (or a scheduler's SIGTERM) waits for the current update, with the validation if an epoch ends, and writes a
checkpoint.

When memory runs out in any process, all processes discard the update, halve the micro-batch, and load the same update
again. The loss of an update is the mean over all its predictions, however it is split (see `accumulate`), so only
dropout is drawn otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from textwrap import shorten
from typing import Any, NoReturn

import torch
from accelerate.utils import gather_object
from accelerate.utils.memory import clear_device_cache

from ..data.collate import Collator, DataStream, Source
from ..data.loader import updates
from ..data.plan import ONE_MICRO_BATCH, Plan
from ..data.seeds import RngKey, seeded
from ..data.sizes import Sizes
from ..errors import RunError
from ..model import Model
from ..oom import ADVICE_SMALLER, as_run_error
from ..storage.weights import load_state, read_tensors, save_weights, state, write_tensors
from ..tensors import Batch, Loss
from .accumulate import Accumulator, Material, Means, Micros, validate
from .checkpoint import Checkpoint, Cursor
from .context import StepContext, precision
from .distributed import broadcast, peer_failures
from .optimizer import clip, make_optimizer, schedule, set_learning
from .signals import interruptions
from .threads import default_workers

KEPT = f"{ADVICE_SMALLER}; the last checkpoint is kept"


def train(model: Model, context: StepContext, sources: Sequence[Source]) -> None:
    """Train a step and write `weights.safetensors` and `log.jsonl` into its folder. The model has the step's initial
    weights."""
    place, device = f"step '{context.name}'", context.accelerator.device
    with (
        peer_failures(context.accelerator, f"{place}: "),
        torch.random.fork_rng([device] if device.type == "cuda" else []),
        interruptions() as stop,
        as_run_error(place, KEPT),
    ):
        model.to(device)
        trainer = Trainer(model, context, make_material(model, context, sources))
        trainer.run(stop.is_set)
        trainer.finish()
    if stop.is_set():
        raise KeyboardInterrupt


def init_objective(model: Model, name: str, seed: int) -> None:
    """Initialise a head from the model that it trains with; its draws depend on the seed and its name."""
    with seeded(seed, f"objectives.{name}", "init_from_model"), torch.no_grad():
        model.objective(name).init_from_model(model)


def make_material(model: Model, context: StepContext, sources: Sequence[Source]) -> Material:
    """The training data of a step, in the order and the batches of its seed and settings."""
    step, training, key = context.step, context.step.training, RngKey(context.seed, context.name)
    streams = [
        DataStream(
            source,
            Collator(model, source.inputs or step.inputs, source.objectives or step.objectives, key, source.examples),
        )
        for source in sources
    ]
    sizes = [Sizes(stream.source.examples, stream.collate) for stream in streams]
    plan = Plan(sizes, key, training, [source.share for source in sources])
    over_batch = next((name for name in step.objectives if name in model.over_batch), "")
    micro_batch_size = ONE_MICRO_BATCH if over_batch else training.micro_batch_size or training.batch_size
    return Material(plan, streams, micro_batch_size, over_batch)


class Trainer:
    """The training of one step.

    cursor    the progress, from the step's checkpoint if there is one
    trained   the trainable parameters, by name
    stopping  whether any process received a signal to stop
    """

    def __init__(self, model: Model, context: StepContext, material: Material) -> None:
        self.model, self.context, self.material = model, context, material
        self.processes, self.plan, self.training = context.accelerator, material.plan, context.step.training
        self.validates = any(stream.source.validation for stream in material.streams)
        self.stopping = False
        set_learning(model, context.step)
        model.backbone.set_gradient_checkpointing(self.training.gradient_checkpointing)
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.optimizer = make_optimizer(self.trained, context.step)
        self.accumulator = Accumulator(context, material, self.loss, [*self.trained.values()])
        self.cursor, self.checkpoint = Cursor(material.micro_batch_size), Checkpoint(context.folder)
        if self.checkpoint.path.exists():
            self._resume()
        broadcast(self.processes, [*state(model).values()])

    def run(self, stop: Callable[[], bool]) -> None:
        """Run the remaining updates. `stop`: whether this process is to stop; then all stop after the current update,
        with a checkpoint and KeyboardInterrupt."""
        plan, cursor, events, name = self.plan, self.cursor, self.context.events, self.context.name
        events("on_step_begin", name, cursor.done, len(plan))
        pairs = plan.pairs(len(plan)), "pairs", plan.pairs(cursor.done)
        with self.context.progress.task(f"{name}: training", *pairs) as advance:
            for number, micros in self._load() if not self._stops_early() else ():
                record = self.update(number, micros, stop)
                if record is None:
                    self._halve(number)
                    continue
                cursor.records.append(record)
                events("on_update", name, record)
                if plan.ends_epoch(cursor.done):
                    self._end_epoch()
                self._save_if_due()  # before any message, which fails if the terminal is gone
                advance(plan.pairs(number + 1) - plan.pairs(number), f"loss {record['loss']:.3f}")
                if self._stops_early():
                    break

    def _load(self) -> Iterator[tuple[int, Micros]]:
        """The remaining updates with this process's micro-batches; an update comes again after `_halve`."""
        processes, cursor, workers = self.processes, self.cursor, self.training.num_workers
        if workers is None:
            workers = default_workers(processes.device, processes.num_processes)
        while cursor.done < len(self.plan):
            size, share = cursor.micro_batch_size, (processes.process_index, processes.num_processes)
            pin = processes.device.type == "cuda"
            batches = updates(self.material.streams, self.plan, size, cursor.done, share, workers, pin)
            while cursor.micro_batch_size == size and cursor.done < len(self.plan):
                yield next(batches)

    def update(self, number: int, micros: Micros, stop: Callable[[], bool] = bool) -> dict[str, Any] | None:
        """One optimiser update from this process's micro-batches. Returns its record for the log; None if memory ran
        out in any process. Raises RunError."""
        share = schedule(self.plan, number, self.training)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * share
        means = self.accumulator.gradients(number, micros, stop)
        if means is None:
            return None
        clipped = clip(self.trained.values(), self.training)
        self.stopping = means.stopping
        if not math.isfinite(clipped["grad_norm"]) or not math.isfinite(means.loss):
            self._refuse(number, means)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        record: dict[str, Any] = {"update": number, "epoch": self.plan.epoch(number), "loss": means.loss}
        if len(self.material.losses) > 1:
            record["losses"] = means.losses
        record |= {"lr": max(group["lr"] for group in self.optimizer.param_groups), **clipped}
        if self.cursor.micro_batch_size != self.material.micro_batch_size:
            record["micro_batch_size"] = self.cursor.micro_batch_size
        return record

    def loss(self, batch: Batch) -> Loss:
        """The losses of a batch on this process's device, in the step's precision."""
        with precision(self.training.precision, self.processes.device):
            loss: Loss = self.model(batch)
        return loss

    def _refuse(self, number: int, means: Means) -> NoReturn:
        """Raises RunError with the examples whose loss is not finite, or else with all examples of the update."""
        what = "gradient" if math.isfinite(means.loss) else "loss"
        suspects = (batch.ids for batch, loss in means.batches if what == "gradient" or not loss.isfinite())
        ids = dict.fromkeys(gather_object([id_ for batch_ids in suspects for id_ in batch_ids]))
        raise RunError(
            f"step '{self.context.name}', update {number}: the {what} is not finite (examples "
            f"{shorten(', '.join(ids), 120, placeholder=' ...')}); check the data of these examples with "
            "`mmgen data check`, or lower learning_rate"
        )

    def _halve(self, number: int) -> None:
        """Prepare another attempt at an update with smaller micro-batches. Raises RunError if they cannot be
        smaller."""
        self.optimizer.zero_grad(set_to_none=True)
        clear_device_cache(garbage_collection=True)
        where, over_batch = f"step '{self.context.name}', update {number}: out of memory", self.material.over_batch
        if over_batch:
            raise RunError(f"{where}; '{over_batch}' compares all pairs of an update; lower training.batch_size")
        if self.cursor.micro_batch_size == 1:
            raise RunError(f"{where} with a single pair; {KEPT}")
        self.cursor.micro_batch_size //= 2
        size = self.cursor.micro_batch_size
        self.context.progress.say(f"{where}; micro_batch_size is {size} from now on; updates stay the same")

    def _end_epoch(self) -> None:
        """Add the validation of an epoch to the last record of the log; with `keep = "best"`, keep the best weights."""
        record, events, name = self.cursor.records[-1], self.context.events, self.context.name
        if self.validates:
            self.model.eval()
            with torch.no_grad():
                values = validate(self.context, self.material, self.loss)
            set_learning(self.model, self.context.step)
            record |= values
            events("on_validation", name, {"update": record["update"], **values})
            if self.training.keep == "best" and self._epochs_since_best() == 0 and self.processes.is_main_process:
                write_tensors(self.checkpoint.best, state(self.model), {"format": "pt"})
        events("on_epoch_end", name, record)

    def _epochs_since_best(self) -> int:
        """How many epochs have ended after the one with the lowest validation loss. Follows from the log, which a
        checkpoint includes."""
        losses = [record["validation_loss"] for record in self.cursor.records if "validation_loss" in record]
        return len(losses) - 1 - losses.index(min(losses))

    def _stops_early(self) -> bool:
        """Whether the last `early_stopping_patience` epochs were not better than those before them."""
        patience, done = self.training.early_stopping_patience, self.cursor.done
        if patience is None or done == len(self.plan) or not self.plan.ends_epoch(done):
            return False
        if self._epochs_since_best() < patience:
            return False
        self.context.progress.say(f"{self.context.name}: stopped early: {patience} epochs without a lower loss")
        return True

    def _save_if_due(self) -> None:
        """Write a checkpoint when one is due, after every epoch and before stopping."""
        done = self.cursor.done
        due = self.plan.ends_epoch(done) or done % self.training.checkpoint_every == 0
        if (due or self.stopping) and done < len(self.plan):
            self.save()
            if self.stopping:
                raise KeyboardInterrupt

    def save(self) -> None:
        """Write all that a resume needs, in the first process: weights, optimiser state, progress, log."""
        if self.processes.is_main_process:
            tensors = {f"model.{name}": value for name, value in state(self.model).items()}
            for name, parameter in self.trained.items():
                moments = self.optimizer.state[parameter].items()
                tensors |= {f"optimizer.{key}.{name}": value for key, value in moments}
            self.checkpoint.write(tensors, self.cursor)

    def _resume(self) -> None:
        """Load what `save` has written."""
        self.cursor, tensors = self.checkpoint.read(len(self.plan))
        weights = state(self.model)
        for place, value in tensors.items():
            kind, _, name = place.partition(".")
            if kind == "model":
                weights |= {name: value} if name in weights else {}  # the model may lack inputs that no step left reads
                continue
            key, _, name = name.partition(".")
            moments = self.optimizer.state[self.trained[name]]
            moments[key] = value.to(moments.get(key, self.trained[name]).device)
        load_state(self.model, weights, self.checkpoint.path)

    def finish(self) -> None:
        """Write the step's weights under their final name, then delete the checkpoint."""
        self.model.backbone.set_gradient_checkpointing(False)
        if self.processes.is_main_process:
            if self.training.keep == "best" and self.checkpoint.best.exists():
                best = read_tensors(self.checkpoint.best)[0]
                load_state(self.model, {**state(self.model), **best}, self.checkpoint.best)
            self.checkpoint.write_log(self.cursor)
            save_weights(self.model, self.context.folder / "weights.safetensors", step=self.context.name)
            self.checkpoint.clear()
        broadcast(self.processes, [*state(self.model).values()])
