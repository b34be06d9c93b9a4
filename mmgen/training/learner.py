"""The learner of one step: its optimiser updates, and the checkpoint that everything of it can be read back from.

The loss of an update is the mean over all its predicted tokens, however it is split: gradients of *sums* are added up
over micro-batches and processes, then divided by the number of tokens of the whole update. Dropout is drawn anew for
every micro-batch from (seed, step, update, micro-batch), so neither a resume nor another number of processes changes
it.

An update that runs out of memory is tried again with every micro-batch cut in two, in all processes alike. A half draws
its dropout from (seed, step, update, micro-batch, half), so the gradient is that of the same loss with other dropout;
without dropout it is the same gradient. The cut stays for the rest of the step, is in the log (`halved`) and the
checkpoint.

With `training.shard` processes hold slices of the weights (see `fsdp`); files hold them whole, and are the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils.memory import clear_device_cache
from torch import Tensor

from ..data.collate import Collator
from ..data.plan import Plan
from ..data.seeds import seed_from
from ..errors import RunError
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_SMALLER, as_run_error, out_of_memory
from ..progress import Progress
from ..recipe.tables import Step, Training
from ..storage.weights import load_state, read_tensors, state, write_tensors
from ..tensors import Batch, Example, Loss
from .accumulate import halves
from .distributed import all_reduce_sum, any_rank, broadcast, gather_texts
from .fsdp import Sharded, shards, too_large
from .optimizer import make_optimizer, schedule, set_learning
from .precision import precision

Micros = Sequence[tuple[int, Batch]]  # micro-batches of one process, each with its number in the update


@dataclass
class Learner:
    """One step being learnt: the model, what of it learns, and how far it is."""

    model: Model
    name: str
    step: Step
    seed: int
    plan: Plan
    examples: Sequence[Example]
    collate: Collator
    folder: Path
    accelerator: Accelerator
    progress: Progress

    def __post_init__(self) -> None:
        set_learning(self.model, self.step)
        self.checkpoint, self.best_weights = self.folder / "checkpoint.safetensors", self.folder / "best.safetensors"
        self.log = self.folder / "log.jsonl"
        self.done, self.best, self.halved = 0, math.inf, 0
        self.stopping = False  # whether any process was asked to stop
        self.records: list[dict] = []
        moments = self._resume() if self.checkpoint.exists() else {}
        broadcast(self.accelerator, list(state(self.model).values()))
        self.sharded = (
            Sharded(self.model, self.accelerator, self.training) if shards(self.training, self.accelerator) else None
        )
        parameters = self.sharded.parameters if self.sharded else dict(self.model.named_parameters())
        self.names = {name: p for name, p in parameters.items() if p.requires_grad}
        self.optimizer = make_optimizer(self.names, self.step)
        self._remember(moments)

    @property
    def training(self) -> Training:
        return self.step.training

    def loss(self, batch: Batch) -> Loss:
        """The loss of a batch on this process's device, in the step's precision."""
        with precision(self.training.precision, self.accelerator.device):
            return self.sharded.loss(batch) if self.sharded else self.model(batch)

    def update(self, number: int, micros: Micros, stop: Callable[[], bool] = bool) -> dict:
        """One optimiser update from this process's micro-batches; what the log says of it. `stop`: asked behind the
        passes, whether all processes shall stop after it. Raises RunError."""
        rate = schedule(number, len(self.plan), self.training.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * rate
        with as_run_error(f"step '{self.name}', update {number}", f"{ADVICE_SMALLER}; the last checkpoint is kept"):
            losses, total = self._gradients(number, micros, stop)
            norm = self._step(number, losses, total)
        limit = self.training.max_grad_norm
        record = {
            "update": number,
            "epoch": self.plan.epoch(number),
            "loss": (total[0] / total[1]).item(),
            "lr": rate * self.training.learning_rate,
            "grad_norm": norm,
        }
        record |= {"clipped": norm > limit} if limit else {}
        return record | ({"halved": self.halved} if self.halved else {})

    def _gradients(
        self, number: int, micros: Micros, stop: Callable[[], bool]
    ) -> tuple[list[tuple[Batch, Tensor]], Tensor]:
        """Gradients of the update's summed loss, over all processes -> this process's losses; (loss, tokens) of all."""
        spare = micros[-1]
        if self.accelerator.process_index >= len(self.plan.updates[number]):
            micros = ()  # there are fewer micro-batches than processes
        while True:
            found = self._attempt(number, micros, spare)
            mine = [parameter.grad is not None for parameter in self.names.values()]
            self.stopping, again, *anywhere = any_rank(self.accelerator, [stop(), found is None, *mine])
            if not again:
                break
            self._halve(number, micros, failed=found is None)
        losses, total = found
        learning = [
            parameter for parameter, has in zip(self.names.values(), anywhere, strict=True) if has and not self.sharded
        ]  # `fully_shard` has added up its own
        for parameter in learning:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        all_reduce_sum(self.accelerator, [total, *(parameter.grad for parameter in learning)])
        return losses, total

    def _attempt(
        self, number: int, micros: Micros, spare: tuple[int, Batch]
    ) -> tuple[list[tuple[Batch, Tensor]], Tensor] | None:
        """The losses of this process's micro-batches, their gradients left where torch leaves them; None without
        memory. Of a sharded model every process makes as many passes, those with fewer micro-batches through `spare`,
        with no weight; and it raises RunError without memory, since the others wait half-way."""
        losses: list[tuple[Batch, Tensor]] = []
        total = torch.zeros(2, dtype=torch.float64, device=self.accelerator.device)  # loss, tokens
        try:
            for micro, whole in micros:
                for place, batch in self._pieces(number, micro, whole):
                    batch = batch.to(self.accelerator.device)
                    torch.manual_seed(seed_from(self.seed, self.name, number, *place))
                    loss = self.loss(batch)
                    self.accelerator.backward(loss.sum)
                    losses.append((batch, loss.sum.detach()))
                    total += torch.stack([loss.sum.detach().double(), loss.count.double()])
            for _ in range(len(losses), self._passes(number) if self.sharded else 0):
                _, batch = next(self._pieces(number, *spare))
                self.accelerator.backward(self.loss(batch.to(self.accelerator.device)).sum * 0)
        except Exception as error:
            if not out_of_memory(error):
                raise
            if self.sharded:
                raise too_large(f"step '{self.name}', update {number}") from None
            return None
        return losses, total

    def _passes(self, number: int) -> int:
        """How many passes the process makes that has most of them in an update."""
        pieces = [len(self._cut(number, micro)) for micro in range(len(self.plan.updates[number]))]
        world = self.accelerator.num_processes
        return max(sum(pieces[rank::world]) for rank in range(world))

    def _pieces(self, number: int, micro: int, whole: Batch) -> Iterator[tuple[tuple[int, ...], Batch]]:
        """A micro-batch, or what it is cut into: where in the update each piece is, and the piece."""
        if not self.halved:
            yield (micro,), whole
            return
        for piece, examples in enumerate(self._cut(number, micro)):
            yield (micro, piece, self.halved), self.collate(examples)

    def _cut(self, number: int, micro: int) -> list[list[Example]]:
        visits = self.plan.updates[number][micro]
        return halves([self.plan.draw(self.examples[visit.index], visit) for visit in visits], self.halved)

    def _halve(self, number: int, micros: Micros, failed: bool) -> None:
        """Make ready for another attempt with smaller micro-batches. Raises RunError when there is nothing left to
        cut."""
        self.optimizer.zero_grad(set_to_none=True)
        clear_device_cache(garbage_collection=True)
        where = f"step '{self.name}', update {number}: out of memory"
        pieces = [piece for micro, _ in micros for piece in self._cut(number, micro)]
        if failed and all(len(piece) == 1 and len(piece[0].targets) == 1 for piece in pieces):
            raise RunError(
                f"{where} with a single pair (example '{pieces[0][0].id}'); use shorter inputs (max_regions), a "
                "smaller encoder, or a larger device; the last checkpoint is kept"
            )
        self.halved += 1
        self.progress.say(
            f"{where}; from here on micro-batches are cut into {2**self.halved}, for the same optimiser update"
        )

    def _step(self, number: int, losses: Sequence[tuple[Batch, Tensor]], total: Tensor) -> float:
        gradients = [p.grad for p in self.names.values() if p.grad is not None]
        summed = self.accelerator.num_processes if self.sharded else 1  # `fully_shard` gives their mean over processes
        torch._foreach_mul_(gradients, summed / total[1].item())
        found = torch.nn.utils.clip_grad_norm_(self.names.values(), self.training.max_grad_norm or math.inf)
        norm = (found.full_tensor() if self.sharded else found).item()
        if not math.isfinite(norm) or not math.isfinite(total[0].item()):
            self._refuse(number, losses, "gradient" if math.isfinite(total[0].item()) else "loss")
        with as_run_error(
            f"step '{self.name}', update {number}, the optimiser's own state",
            "use a smaller encoder, or a larger device",
        ):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def _refuse(self, number: int, losses: Sequence[tuple[Batch, Tensor]], what: str) -> None:
        """Raises RunError, naming the examples whose own loss is not finite, or else all of the update's."""
        bad = [id_ for batch, loss in losses if not loss.isfinite() for id_ in batch.ids]
        found = gather_texts(self.accelerator, bad) or gather_texts(
            self.accelerator, [id_ for batch, _ in losses for id_ in batch.ids]
        )
        ids = list(dict.fromkeys(found))
        shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
        raise RunError(
            f"step '{self.name}', update {number}: the {what} is not finite (examples {shown}); lower learning_rate or "
            "look at their features with `mmgen data check`; the last checkpoint is kept"
        )

    def save(self) -> None:
        """Everything that a resume needs, in one file: what has been learnt, the optimiser, how far it is. All
        processes call it, and the first one writes."""
        tensors = {f"model.{name}": tensor for name, tensor in self._learnt().items()}
        for name, parameter in self.names.items():
            for key, value in self.optimizer.state[parameter].items():
                tensors[f"optimizer.{key}.{name}"] = value
        cursor = {"done": self.done, "best": self.best, "records": len(self.records), "halved": self.halved}
        self.write_log()
        self._write(self.checkpoint, tensors, {"cursor": json.dumps(cursor)})

    def save_best(self) -> None:
        """The weights as they are now, beside the checkpoint; all processes call it, and the first one writes."""
        self._write(self.best_weights, self._state(), {"format": "pt"})

    def _write(self, path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        whole = self.sharded.gather(tensors) if self.sharded else tensors
        if self.accelerator.is_main_process:
            write_tensors(path, whole, metadata)

    def write_log(self) -> None:
        if self.accelerator.is_main_process:
            write_text(self.log, "".join(json.dumps(record) + "\n" for record in self.records))

    def _resume(self) -> dict[str, dict[str, Tensor]]:
        """How far it is, and the weights, from the checkpoint -> what the optimiser kept, by parameter and kind."""
        tensors, metadata = read_tensors(self.checkpoint)
        try:
            cursor = json.loads(metadata["cursor"])
            self.done, self.best, self.halved = cursor["done"], cursor["best"], cursor.get("halved", 0)
            lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
            self.records = [json.loads(line) for line in lines[: cursor["records"]]]
            self._check_cursor()
        except (KeyError, ValueError, TypeError, AttributeError, UnicodeDecodeError, RecursionError) as error:
            raise RunError(
                f"{self.checkpoint}: damaged, or its log.jsonl is: {error}; delete it to learn this step anew"
            ) from None
        learnt = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        load_state(self.model, {**state(self.model), **learnt}, self.checkpoint)
        kept: dict[str, dict[str, Tensor]] = {}
        for place, tensor in tensors.items():
            kind, _, rest = place.partition(".")
            key, _, name = rest.partition(".")
            if kind == "optimizer":
                kept.setdefault(name, {})[key] = tensor
        return kept

    def _remember(self, moments: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Hand the optimiser what it kept."""
        for name, parameter in self.names.items():
            for key, tensor in moments.get(name, {}).items():
                self.optimizer.state[parameter][key] = (
                    self.sharded.cut(tensor, name) if self.sharded else tensor.to(parameter.device)
                )

    def _check_cursor(self) -> None:
        """Raises ValueError unless the log has a record with numbers for every update that is done, and the place
        exists."""
        if (
            type(self.done) is not int
            or not 0 <= self.done <= len(self.plan)
            or type(self.halved) is not int
            or not 0 <= self.halved < 64
        ):
            raise ValueError(f"update {self.done} of {len(self.plan)}, halved {self.halved}")
        if not isinstance(self.best, int | float) or [record["update"] for record in self.records] != list(
            range(self.done)
        ):
            raise ValueError(f"its records are not those of {self.done} updates")
        for record in self.records:
            numbers = [record["epoch"], record["loss"], record["grad_norm"], record.get("validation_loss") or 0.0]
            if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
                raise ValueError(f"the record of update {record['update']} has no numbers")

    def _learnt(self) -> dict[str, Tensor]:
        prefixes = tuple("backbone." if part == "backbone" else f"embedders.{part}." for part in self.step.learn)
        return {name: tensor for name, tensor in self._state().items() if name.startswith(("generator.", *prefixes))}

    def _state(self) -> dict[str, Tensor]:
        return self.sharded.state() if self.sharded else state(self.model)
