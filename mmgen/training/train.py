"""Train: a step's updates one after another, from its start or from the last checkpoint, on any number of processes.

Ctrl-C (or a scheduler's SIGTERM) waits for the update that is being computed, and leaves a checkpoint behind it. It
does not wait for the validation at an epoch's end: that is made up for when the step goes on, with the same weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import torch
from accelerate import Accelerator

from ..data.collate import Collator
from ..data.loader import timed, updates
from ..data.plan import Plan
from ..model import Model
from ..oom import ADVICE_SMALLER, as_run_error
from ..progress import Progress
from ..recipe.tables import Step
from ..storage.weights import load_state, read_tensors, save_weights, state
from ..tensors import Example
from .distributed import any_rank, broadcast
from .fsdp import shards
from .learner import Learner
from .signals import interruptions
from .validate import validate


def train(
    model: Model,
    name: str,
    step: Step,
    examples: Sequence[Example],
    validation: Sequence[Example],
    *,
    seed: int,
    folder: Path,
    accelerator: Accelerator,
    progress: Progress,
) -> None:
    """Teach a step and write `weights.safetensors` and `log.jsonl` into its folder. The model holds the step's
    start."""
    training = step.training
    collate = Collator(model, step.inputs)
    plan = Plan.make(
        examples,
        seed=seed,
        step=name,
        epochs=training.epochs,
        batch_size=training.batch_size,
        micro_batch=training.micro_batch or training.batch_size,
        bucket=training.bucket,
        lengths=collate,
    )
    if accelerator.num_processes > (most := max(map(len, plan.updates))):
        progress.say(
            f"{name}: an update has {most} micro-batches for {accelerator.num_processes} processes, so some have "
            "nothing to do; lower training.micro_batch"
        )
    if training.shard and accelerator.num_processes == 1:
        progress.say(
            f"{name}: training.shard changes nothing in one process; start several with `torchrun --nproc-per-node N "
            "-m mmgen run ...`"
        )
    devices = [accelerator.device] if accelerator.device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices),
        interruptions() as asked,
        as_run_error(f"step '{name}'", f"{ADVICE_SMALLER}; the last checkpoint is kept"),
    ):
        model.to(
            "cpu" if shards(training, accelerator) else accelerator.device
        )  # each process takes its slices from there
        learner = Learner(model, name, step, seed, plan, examples, collate, folder, accelerator, progress)
        before = _pairs(plan.updates[: learner.done], examples)
        with progress.task(f"{name}: learning", _pairs(plan.updates, examples), "questions", before) as advance:
            waits: list[float] = []
            began, model.slots = time.perf_counter(), [0, 0]
            if (
                learner.done in plan.epochs and validation and "validation_loss" not in learner.records[-1]
            ):  # it was stopped before
                _end_epoch(learner, validation, asked.is_set)
                _keep(learner)
            for number, micros in timed(_updates(learner, examples, collate), waits):
                learner.records.append(learner.update(number, micros, stop=asked.is_set))
                learner.done = number + 1
                if learner.done in plan.epochs:
                    _end_epoch(learner, validation, asked.is_set)
                advance(_pairs(plan.updates[number : number + 1], examples), _told(learner.records))
                _keep(learner)
        finish(learner)
    if waits:
        progress.say(f"{name}: {_spent(model, sum(waits) / (time.perf_counter() - began))}")
    if asked.is_set():
        raise KeyboardInterrupt
    accelerator.free_memory()


def _spent(model: Model, waiting: float) -> str:
    """What work was for nothing: padding (where the generator lays rows out by `Model.rows`), and waiting for the
    loader."""
    real, slots = model.slots
    padding = f"{1 - real / slots:.1%} of the slots were padding; " if slots else ""
    return f"{padding}{waiting:.1%} of the time went into waiting for data"


def _updates(learner: Learner, examples: Sequence[Example], collate: Collator) -> Iterator:
    accelerator = learner.accelerator
    return updates(
        examples,
        learner.plan,
        collate,
        start=learner.done,
        rank=accelerator.process_index,
        world=accelerator.num_processes,
        workers=learner.training.workers,
        pin=accelerator.device.type == "cuda",
    )


def _end_epoch(learner: Learner, validation: Sequence[Example], stop: Callable[[], bool]) -> None:
    """What the log's last record says of the epoch that it ends."""
    record = learner.records[-1]
    record |= clipping(learner.records)
    if not validation:
        return
    if learner.stopping:
        learner.save()
        raise KeyboardInterrupt
    record["validation_loss"] = validate(learner, validation)
    (learner.stopping,) = any_rank(learner.accelerator, [stop()])


def _keep(learner: Learner) -> None:
    """A checkpoint now and then, after every epoch, and before stopping; the best weights where they are wanted."""
    record = learner.records[-1]
    due = learner.done in learner.plan.epochs or learner.done % learner.training.checkpoint_every == 0
    better = record.get("validation_loss", math.inf) < learner.best
    learner.best = min(learner.best, record.get("validation_loss", math.inf))
    unfinished = learner.done < len(learner.plan)
    if better and learner.training.keep == "best":
        learner.save_best()
    if (due or learner.stopping) and unfinished:
        learner.save()
    if learner.stopping and unfinished:
        raise KeyboardInterrupt


def finish(learner: Learner) -> None:
    """The step's weights under their final name; the checkpoint goes once they are there."""
    best, accelerator = learner.best_weights, learner.accelerator
    if learner.sharded:
        learner.sharded.close()
    if accelerator.is_main_process:
        if learner.training.keep == "best" and best.exists():
            load_state(learner.model, read_tensors(best)[0], best)
        learner.write_log()
        save_weights(learner.model, learner.folder / "weights.safetensors", step=learner.name)
        for spent in (learner.checkpoint, best):
            spent.unlink(missing_ok=True)
    broadcast(accelerator, list(state(learner.model).values()))


def clipping(records: Sequence[dict]) -> dict[str, float]:
    """For the log's record that ends an epoch: how large gradients have been in it, and how many updates were scaled
    down."""
    of_epoch = [record for record in records if int(record["epoch"]) == int(records[-1]["epoch"])]
    clipped = [record.get("clipped", False) for record in of_epoch]
    return {
        "epoch_grad_norm": median(record["grad_norm"] for record in of_epoch),
        "epoch_clipped": sum(clipped) / len(clipped),
    }


def _pairs(updates: Sequence, examples: Sequence[Example]) -> int:
    return sum(len(examples[visit.index].targets) for update in updates for micro in update for visit in micro)


def _told(records: Sequence[dict]) -> str:
    recent = [record["loss"] for record in records[-20:]]
    checked = next((record["validation_loss"] for record in reversed(records) if record.get("validation_loss")), None)
    return f"loss {sum(recent) / len(recent):.3f}" + (f", validation {checked:.3f}" if checked else "")
