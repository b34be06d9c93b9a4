"""Train: one step's optimiser updates, from its start or from the last checkpoint, on any number of processes.

The loss of an update is the mean over all its predicted tokens, however it is split: gradients of *sums* are added up
over micro-batches and processes, then divided by the number of tokens of the whole update. Dropout is drawn anew for
every micro-batch from (seed, step, update, micro-batch), so neither a resume nor another number of processes changes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ..checkpoint import load_state, read_tensors, save_weights, state, write_tensors, write_text
from ..data import Collator, Plan, in_order, settle, share, updates
from ..errors import RunError
from ..model import Model
from ..progress import Progress
from ..recipe import Step, Training
from ..tensors import Batch, Example


@dataclass
class Learner:
    """One step being learnt: the model, what of it learns, and how far it is."""

    model: Model
    name: str
    step: Step
    seed: int
    plan: Plan
    folder: Path
    accelerator: Accelerator

    def __post_init__(self) -> None:
        set_learning(self.model, self.step)
        self.names = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = make_optimizer(self.model, self.step)
        self.checkpoint = self.folder / "checkpoint.safetensors"
        self.log = self.folder / "log.jsonl"
        self.done, self.best = 0, math.inf
        self.records: list[dict] = []
        if self.checkpoint.exists():
            self._resume()

    @property
    def training(self) -> Training:
        return self.step.training

    def update(self, wrapped: nn.Module, number: int, micros: Sequence[tuple[int, Batch]], count_micros: int) -> dict:
        """One optimiser update from this process's micro-batches; what the log says of it."""
        rate = schedule(number, len(self.plan), self.training.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * rate
        ours = share(count_micros, self.accelerator.process_index, self.accelerator.num_processes)
        idle = self.accelerator.process_index >= count_micros
        total = torch.zeros(2, dtype=torch.float64, device=self.accelerator.device)  # loss, tokens
        for micro, batch in micros:
            batch = batch.to(self.accelerator.device)
            last = micro == ours[-1]
            with contextlib.nullcontext() if last else self.accelerator.no_sync(wrapped):
                torch.manual_seed(derive(self.seed, self.name, number, micro))
                with precision(self.training.precision, self.accelerator.device):
                    loss = wrapped(batch)
                self.accelerator.backward(loss.sum * (0.0 if idle else 1.0))
            total += 0.0 if idle else torch.stack([loss.sum.detach().double(), loss.count.double()])
        total = self.accelerator.reduce(total, "sum")
        norm = self._step(total, number, micros)
        return {"update": number, "epoch": self.plan.epoch(number), "loss": (total[0] / total[1]).item(), "lr": rate * self.training.learning_rate, "grad_norm": norm}

    def _step(self, total: Tensor, number: int, micros: Sequence[tuple[int, Batch]]) -> float:
        gradients = [p.grad for p in self.names.values() if p.grad is not None]
        # DDP averages over processes what should be added up
        torch._foreach_mul_(gradients, self.accelerator.num_processes / total[1].item())
        limit = self.training.max_grad_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.names.values(), limit).item()
        if not math.isfinite(norm) or not math.isfinite(total[0].item()):
            ids = [id_ for _, batch in micros for id_ in batch.ids]
            shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
            raise RunError(
                f"step '{self.name}', update {number}: the loss or its gradient is not finite (examples {shown}); lower learning_rate or "
                "look at their features with `mmgen data check`; the last checkpoint is kept"
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def save(self) -> None:
        """Everything that a resume needs, in one file: what has been learnt, the optimiser, how far it is."""
        tensors = {f"model.{name}": tensor for name, tensor in self._learnt().items()}
        for name, parameter in self.names.items():
            for key, value in self.optimizer.state[parameter].items():
                tensors[f"optimizer.{key}.{name}"] = value
        cursor = {"done": self.done, "best": self.best, "records": len(self.records)}
        self._write_log()
        write_tensors(self.checkpoint, tensors, {"cursor": json.dumps(cursor)})

    def _resume(self) -> None:
        tensors, metadata = read_tensors(self.checkpoint)
        cursor = json.loads(metadata["cursor"])
        self.done, self.best = cursor["done"], cursor["best"]
        learnt = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        load_state(self.model, {**state(self.model), **learnt}, self.checkpoint)
        for name, parameter in self.names.items():
            keys = [key.split(".")[1] for key in tensors if key.startswith("optimizer.") and key.split(".", 2)[2] == name]
            self.optimizer.state[parameter] = {
                key: tensors[f"optimizer.{key}.{name}"].to(parameter.device) for key in keys
            }
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        self.records = [json.loads(line) for line in lines[: cursor["records"]]]

    def _learnt(self) -> dict[str, Tensor]:
        prefixes = tuple("backbone." if part == "backbone" else f"embedders.{part}." for part in self.step.learn)
        return {name: tensor for name, tensor in state(self.model).items() if name.startswith(("generator.", *prefixes))}

    def _write_log(self) -> None:
        write_text(self.log, "".join(json.dumps(record) + "\n" for record in self.records))


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
    """Teach a step and write `weights.safetensors` and `log.jsonl` into its folder. The model holds the step's start."""
    training = step.training
    plan = Plan.make(
        examples, seed=seed, step=name, epochs=training.epochs, batch_size=training.batch_size, micro_batch=training.micro_batch or training.batch_size
    )
    model.to(accelerator.device)
    devices = [accelerator.device] if accelerator.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        learner = Learner(model, name, step, seed, plan, folder, accelerator)
        collate = Collator(model, step.inputs)
        wrapped = accelerator.prepare_model(model)
        before = _pairs(plan.updates[: learner.done], examples)
        with progress.task(f"{name}: learning", _pairs(plan.updates, examples), "questions", before) as advance:
            for number, micros in _updates(learner, examples, collate):
                record = learner.update(wrapped, number, micros, len(plan.updates[number]))
                learner.done = number + 1
                if learner.done in plan.epochs and validation:
                    record["validation_loss"] = validate(model, collate, validation, accelerator, training)
                learner.records.append(record)
                advance(_pairs(plan.updates[number : number + 1], examples), _told(learner.records))
                _keep(learner, record)
        finish(learner)
    accelerator.free_memory()


def _updates(learner: Learner, examples: Sequence[Example], collate: Collator) -> Iterator:
    accelerator = learner.accelerator
    return updates(
        examples, learner.plan, collate, start=learner.done, rank=accelerator.process_index, world=accelerator.num_processes,
        workers=learner.training.workers, pin=accelerator.device.type == "cuda",
    )  # fmt: skip


def _keep(learner: Learner, record: dict) -> None:
    """A checkpoint now and then and after every epoch; the best weights where they are wanted."""
    epoch_ends = learner.done in learner.plan.epochs
    better = record.get("validation_loss", math.inf) < learner.best
    learner.best = min(learner.best, record.get("validation_loss", math.inf))
    if not learner.accelerator.is_main_process:
        return
    if better and learner.training.keep == "best":
        save_weights(learner.model, learner.folder / "best.safetensors")
    if (epoch_ends or learner.done % learner.training.checkpoint_every == 0) and learner.done < len(learner.plan):
        learner.save()


def finish(learner: Learner) -> None:
    """The step's weights under their final name; the checkpoint goes once they are there."""
    best = learner.folder / "best.safetensors"
    if learner.training.keep == "best" and best.exists():
        load_state(learner.model, read_tensors(best)[0], best)
    if learner.accelerator.is_main_process:
        learner._write_log()
        save_weights(learner.model, learner.folder / "weights.safetensors", step=learner.name)
        for spent in (learner.checkpoint, best):
            spent.unlink(missing_ok=True)
    learner.accelerator.wait_for_everyone()


def set_learning(model: Model, step: Step) -> None:
    """What the step names learns; all else is frozen and in eval mode. A generator's own head always learns."""
    model.train()
    for part in ("backbone", *model.inputs):
        learns = part in step.learn
        model.part(part).requires_grad_(learns).train(learns)


def make_optimizer(model: Model, step: Step) -> torch.optim.AdamW:
    """AdamW as BERT was trained with it: weight decay but for biases and norms (Devlin et al., 2019)."""
    training, groups = step.training, {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            of_input = name.startswith("embedders.")
            peak = training.input_learning_rate if of_input and training.input_learning_rate else training.learning_rate
            decay = training.weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((peak, decay), []).append(parameter)
    if not groups:
        raise RunError(f"a step that learns {', '.join(step.learn)} has no parameters to learn")
    return torch.optim.AdamW(
        [{"params": parameters, "lr": peak, "peak": peak, "weight_decay": decay} for (peak, decay), parameters in groups.items()],
        fused=True,
    )


def schedule(update: int, total: int, warmup: float) -> float:
    """Share of the highest rate: up linearly over the first `warmup` of the updates, then down to 0."""
    rising = max(1, round(total * warmup))
    return (update + 1) / rising if update < rising else (total - update) / max(1, total - rising)


def precision(name: str, device: torch.device) -> contextlib.AbstractContextManager:
    """Mixed precision of a step. (accelerate fixes one for a whole process; here every step may have its own.)"""
    wanted = name == "bf16" or (name == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported())
    return torch.autocast(device.type, torch.bfloat16) if wanted else contextlib.nullcontext()


def derive(*place: object) -> int:
    """A seed for torch from where we are."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, place)).encode()).digest()[:7], "big")


@torch.no_grad()
def validate(model: Model, collate: Collator, examples: Sequence[Example], accelerator: Accelerator, training: Training) -> float:
    """Mean loss a token over examples, shared out over processes."""
    ours = examples[accelerator.process_index :: accelerator.num_processes]
    total = torch.zeros(2, dtype=torch.float64, device=accelerator.device)
    modes = {name: module.training for name, module in model.named_modules()}
    model.eval()
    for indices in in_order(ours, 32):
        batch = collate([settle(ours[index]) for index in indices]).to(accelerator.device)
        with precision(training.precision, accelerator.device):
            loss = model(batch)
        total += torch.stack([loss.sum.double(), loss.count.double()])
    for name, module in model.named_modules():
        module.training = modes[name]
    total = accelerator.reduce(total, "sum")
    return (total[0] / total[1]).item()


def _pairs(updates: Sequence, examples: Sequence[Example]) -> int:
    return sum(len(examples[visit.index].targets) for update in updates for micro in update for visit in micro)


def _told(records: Sequence[dict]) -> str:
    recent = [record["loss"] for record in records[-20:]]
    checked = next((record["validation_loss"] for record in reversed(records) if record.get("validation_loss")), None)
    return f"loss {sum(recent) / len(recent):.3f}" + (f", validation {checked:.3f}" if checked else "")
