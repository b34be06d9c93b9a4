"""Train a step from its start or its last checkpoint: updates, ends of epochs, when to save, when to stop early.

Ctrl-C (or a scheduler's SIGTERM) waits for the current update and writes a checkpoint. It does not wait for the
validation at the end of an epoch: a resumed step validates first, with the same weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import torch

from ..data.collate import Collator
from ..data.loader import lost_workers_explained, time_batches, updates
from ..data.plan import ONE_MICRO_BATCH, Plan, PlanOptions
from ..data.seeds import RngKey
from ..data.sizes import Sizes
from ..data.sources import DataStream, Source
from ..model import Model
from ..oom import ADVICE_SMALLER, as_run_error
from ..storage.weights import load_state, read_tensors, save_weights, state
from .accumulate import Material
from .context import StepContext
from .distributed import any_rank, broadcast, peer_failures
from .learner import Learner, ScoreModel, set_checkpointing_and_compile
from .signals import interruptions
from .threads import default_workers
from .validate import in_eval_mode, validate


def train(model: Model, context: StepContext, sources: Sequence[Source], scores: ScoreModel | None = None) -> None:
    """Train a step and write `weights.safetensors` and `log.jsonl` into its folder. The model has the step's initial
    weights. `scores`: of the validation examples, for `training.metric_for_best_model`."""
    accelerator = context.accelerator
    material = make_material(model, context, sources)
    _warn_of_processes(context, material)
    devices = [accelerator.device] if accelerator.device.type == "cuda" else []
    with (
        peer_failures(accelerator, f"step '{context.name}': "),
        torch.random.fork_rng(devices),
        interruptions() as stop,
        as_run_error(f"step '{context.name}'", f"{ADVICE_SMALLER}; the last checkpoint is kept"),
        lost_workers_explained(f"step '{context.name}'"),
    ):
        model.to(accelerator.device)
        for name in context.step.objectives:
            model.objective(name).on_train_begin(model)
        learner = Learner(model, context, material, scores)
        context.events.send("on_step_begin", context.name, learner.cursor.done, len(learner.plan))
        spent = _train_updates(learner, stop.is_set)
        finish(learner)
    if spent:
        context.progress.say(f"{context.name}: {spent}")
    if stop.is_set():
        raise KeyboardInterrupt


def make_material(model: Model, context: StepContext, sources: Sequence[Source]) -> Material:
    """The training data of a step, in the order and the batches of its seed and settings."""
    training, step = context.step.training, context.step
    place = RngKey(context.seed, context.name)
    streams = [
        DataStream(
            source,
            Collator(
                model,
                source.inputs or step.inputs,
                source.objectives or step.objectives,
                place,
                source.examples,
            ),
        )
        for source in sources
    ]
    over_batch = next((name for name in step.objectives if name in model.over_batch), "")
    options = PlanOptions(
        seed=context.seed,
        step=context.name,
        epochs=training.epochs,
        updates=training.updates,
        batch_size=training.batch_size,
        length_bucket=training.length_bucket,
    )
    sizes = [Sizes(stream.source.examples, stream.collate) for stream in streams]
    plan = Plan(sizes, options, [source.share for source in sources])
    micro_batch_size = training.micro_batch_size or training.batch_size
    return Material(plan, streams, ONE_MICRO_BATCH if over_batch else micro_batch_size, over_batch)


def _warn_of_processes(context: StepContext, material: Material) -> None:
    """Report a number of processes that does not fit the settings."""
    plan, processes = material.plan, context.accelerator.num_processes
    if material.over_batch and processes > 1:
        context.progress.say(
            f"{context.name}: '{material.over_batch}' compares all pairs of an update, so one of {processes} processes "
            "trains and the rest are idle"
        )
    elif processes > (most := len(plan.update(0, material.micro_batch_size))):
        context.progress.say(
            f"{context.name}: an update has {most} micro-batches for {processes} processes, so some are idle; lower "
            "training.micro_batch_size"
        )


def _train_updates(learner: Learner, stop: Callable[[], bool]) -> str:
    """Run the remaining updates. Returns a message about padding and waiting."""
    plan, cursor = learner.plan, learner.cursor
    validation = any(stream.source.validation for stream in learner.material.streams)
    before = plan.pairs(end=cursor.done)
    name = learner.context.name
    with learner.context.progress.task(f"{name}: training", plan.pairs(), "pairs", before) as advance:
        waits: list[float] = []
        began = time.perf_counter()
        if plan.ends_epoch(cursor.done) and validation and "validation_loss" not in cursor.last:  # stopped before
            _end_epoch(learner, stop)
            _save_checkpoint(learner)
        if _stops_early(learner):  # a run that was killed before it wrote the step's weights
            return ""
        for number, micros in time_batches(_load_updates(learner), waits):
            cursor.records.append(learner.update(number, micros, stop=stop))
            learner.context.events.send("on_update", name, cursor.last)
            cursor.done = number + 1
            if plan.ends_epoch(cursor.done):
                _end_epoch(learner, stop)
            _save_checkpoint(learner)  # before any message, which fails if the terminal is gone
            advance(plan.pairs(number, number + 1), _summarise_losses(cursor.records))
            if _stops_early(learner):
                break
    return _waste_summary(learner, sum(waits) / (time.perf_counter() - began)) if waits else ""


def _waste_summary(learner: Learner, waiting: float) -> str:
    """A message about wasted work: padding (if the generator counts its slots), and waiting for the loader."""
    real, slots = learner.accumulator.slots.tolist()
    padding = f"{1 - real / slots:.1%} of the slots were padding; " if slots else ""
    return f"{padding}{waiting:.1%} of the time was spent waiting for data"


def _load_updates(learner: Learner) -> Iterator[Any]:
    accelerator, material = learner.accelerator, learner.material
    workers = learner.training.num_workers
    if workers is None:
        workers = default_workers(accelerator.device, accelerator.num_processes)
    return updates(
        material.streams,
        material.plan,
        material.micro_batch_size,
        start=learner.cursor.done,
        share=(accelerator.process_index, accelerator.num_processes),
        workers=workers,
        pin=accelerator.device.type == "cuda",
    )


def _end_epoch(learner: Learner, stop: Callable[[], bool]) -> None:
    """Add the summary of an epoch to the last record of the log."""
    record, events, name = learner.cursor.last, learner.context.events, learner.context.name
    record |= summarise_clipping(learner.cursor.records)
    if any(stream.source.validation for stream in learner.material.streams):
        if learner.stopping:
            learner.save()
            raise KeyboardInterrupt
        values = validate(learner)
        record |= values
        events.send("on_validation", name, {"update": record["update"], **values})
        if learner.context.predict:
            events.send("on_examples", name, record["update"], in_eval_mode(learner.model, learner.context.predict))
        (learner.stopping,) = any_rank(learner.accelerator, [stop()])
    events.send("on_epoch_end", name, record)


def _save_checkpoint(learner: Learner) -> None:
    """Write a checkpoint when one is due, after every epoch and before stopping, and the best weights with
    `keep = "best"`."""
    cursor = learner.cursor
    value = learner.monitored(cursor.last)
    due = learner.plan.ends_epoch(cursor.done) or cursor.done % learner.training.checkpoint_every == 0
    better = value < cursor.best
    cursor.best = min(cursor.best, value)
    unfinished = cursor.done < len(learner.plan)
    if better and learner.training.keep == "best":
        learner.save_best()
    if (due or learner.stopping) and unfinished:
        learner.save()
    if learner.stopping and unfinished:
        raise KeyboardInterrupt


def _stops_early(learner: Learner) -> bool:
    """Whether the last `early_stopping_patience` epochs were not better than those before them. Follows from the log,
    which a checkpoint includes."""
    patience, cursor = learner.training.early_stopping_patience, learner.cursor
    if patience is None or not learner.plan.ends_epoch(cursor.done) or cursor.done == len(learner.plan):
        return False
    values = [learner.monitored(record) for record in cursor.records if "validation_loss" in record]
    if len(values) - values.index(min(values)) <= patience:
        return False
    measure = learner.training.metric_for_best_model or "validation loss"
    learner.context.progress.say(
        f"{learner.context.name}: stopped early: {patience} epoch{'s' * (patience > 1)} without a better {measure}"
    )
    return True


def finish(learner: Learner) -> None:
    """Write the step's weights under their final name, then delete the checkpoint."""
    checkpoint, accelerator, context = learner.checkpoint, learner.accelerator, learner.context
    set_checkpointing_and_compile(learner.model.backbone, None)
    if accelerator.is_main_process:
        if learner.training.keep == "best" and checkpoint.best.exists():
            best = read_tensors(checkpoint.best)[0]  # an earlier session with fewer inputs may have written it
            load_state(learner.model, {**state(learner.model), **best}, checkpoint.best)
        checkpoint.write_log(learner.cursor)
        save_weights(learner.model, context.folder / "weights.safetensors", step=context.name)
        checkpoint.clear()
    broadcast(accelerator, list(state(learner.model).values()))


def summarise_clipping(records: Sequence[dict]) -> dict[str, float]:
    """For the last record of an epoch: the median norm of its gradients, and the share of clipped updates."""
    of_epoch = [record for record in records if int(record["epoch"]) == int(records[-1]["epoch"])]
    clipped = [record.get("clipped", False) for record in of_epoch]
    return {
        "epoch_grad_norm": median(record["grad_norm"] for record in of_epoch),
        "epoch_clipped": sum(clipped) / len(clipped),
    }


def _summarise_losses(records: Sequence[dict]) -> str:
    recent = [record["loss"] for record in records[-20:]]
    checked = next((record["validation_loss"] for record in reversed(records) if record.get("validation_loss")), None)
    return f"loss {sum(recent) / len(recent):.3f}" + (f", validation {checked:.3f}" if checked else "")
