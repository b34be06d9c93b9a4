"""Epochs of a complete `mmgen run` on a synthetic data set: seconds per epoch, and the shares of loader and
checkpoints.

The time is recorded at every update. The first epoch includes one-time work (choosing kernels, reading files), so it
is reported separately. The loader is also measured alone, without training."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

from mmgen.data.collate import Collator
from mmgen.data.loader import MicroBatches, updates
from mmgen.data.plan import DataStream, Plan, PlanOptions
from mmgen.data.sources import Source
from mmgen.inference.load import load_run
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.recipe.tables import Recipe
from mmgen.registry import installed
from mmgen.runs.run import run

from .synthetic import Arguments, arguments, tell

LEARNING = "both: training"
WAITING = re.compile(r"([\d.]+)% of the slots were padding; ([\d.]+)% of the time was spent waiting")
LOADED = 400  # micro-batches that the loader makes alone


class Watched(Progress):
    """The time of each update, and all messages."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.lines: list[str] = []

    @contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator:
        watching = label == LEARNING
        if watching:
            self.times.append(time.perf_counter())
        yield lambda steps=1, text="": self.times.append(time.perf_counter()) if watching else None

    def say(self, text: str) -> None:
        self.lines.append(text)


def seconds(times: Sequence[float], ends: Sequence[int], every: int) -> dict:
    """Of each epoch, its checkpoints left out; and of the checkpoints, which are written behind an update. `ends`:
    updates that are done when an epoch ends; `every`: updates between checkpoints.

    A checkpoint's time is what the update after it takes longer than the median."""
    gaps = [after - before for before, after in pairwise(times)]
    usual = median(gaps[1:] or gaps)
    behind = {number for number in range(1, len(gaps)) if number in ends or number % every == 0}
    slower = {number: max(0.0, gaps[number] - usual) for number in behind}
    epochs = []
    for first, last in pairwise([0, *ends]):
        spent = sum(slower.get(number, 0.0) for number in range(first, last))
        epochs.append({"seconds": sum(gaps[first:last]) - spent, "checkpoints": spent})
    return {"epochs": epochs, "update": usual}


def learnt(chosen: Arguments) -> dict:
    """Train, and measure the epochs; then measure the loader alone."""
    output, watched = chosen.folder.resolve() / "runs", Watched()
    sets = {"training.epochs": chosen.epochs, "training.num_workers": chosen.workers, "output": json.dumps(str(output))}
    settings = tuple(f"{key}={value}" for key, value in sets.items())
    recipe, _ = load(chosen.folder / "recipe.toml", installed(), sets=settings)
    shutil.rmtree(output, ignore_errors=True)
    try:
        place = run(recipe, progress=watched).path
        alone = loaded(place, recipe, pin=chosen.device.startswith("cuda"))
    finally:
        shutil.rmtree(output, ignore_errors=True)
    per_epoch, rest = divmod(len(watched.times) - 1, chosen.epochs)
    if rest:
        raise SystemExit(f"{len(watched.times) - 1} updates in {chosen.epochs} epochs: they are not alike")
    ends = [per_epoch * (epoch + 1) for epoch in range(chosen.epochs)]
    waste = next(match for line in watched.lines if (match := WAITING.search(line)))
    shares = {"padding": float(waste[1]) / 100, "waiting": float(waste[2]) / 100, "loader": alone}
    return seconds(watched.times, ends, recipe.steps["both"].training.checkpoint_every) | shares


def loaded(place: Path, recipe: Recipe, pin: bool) -> float | None:
    """Questions per second of the loader alone, without the start of its workers."""
    model, examples = load_run(place).model, recipe.data.build().split("train")
    training, collate = recipe.steps["both"].training, Collator(model, model.inputs)
    batch = training.batch_size
    options = PlanOptions(
        0, "both", training.epochs, batch_size=batch, micro_batch_size=batch, length_bucket=training.length_bucket
    )
    streams = [DataStream(Source(examples), collate)]
    plan = Plan.make(streams, options)
    questions, began = 0, 0.0
    for number, _ in updates(MicroBatches(streams, plan), workers=training.num_workers, pin=pin):
        if not number:
            began = time.perf_counter()
        elif number < LOADED:
            questions += sum(len(examples[sample.index].targets) for micro in plan.updates[number] for sample in micro)
        else:
            break
    return questions / (time.perf_counter() - began) if questions else None


def _more(parser) -> None:
    parser.add_argument("folder", type=Path)
    for name in ("epochs", "workers"):
        parser.add_argument(f"--{name}", type=int, required=True)


if __name__ == "__main__":
    options = arguments(__doc__, _more)
    tell(learnt(options))
