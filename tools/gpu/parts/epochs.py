"""Epochs with the sizes of VQG_COCO and VQA, on synthetic features, and the share of the loader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import REAL, Epoch, Sizes
from ..table import goal, share, table


def steps(sizes: Sizes, work: Path) -> list[Step]:
    commands = []
    for epoch in sizes.epochs:
        folder = work / epoch.name
        named = {"count": epoch.images, "stored": epoch.stored, "questions": epoch.questions}
        size = [word for name, value in named.items() for word in (f"--{name}", str(value))]
        make = ("-m", "tools.gpu.measures.data_set", str(folder), *sizes.shape, *size)
        commands.append(Step(f"{epoch.name}-features", make, product=folder))
        for workers in epoch.workers:
            run = ("-m", "tools.gpu.measures.epochs", str(folder), *sizes.shape)
            counts = ("--epochs", str(epoch.epochs), "--workers", str(workers))
            name = f"{epoch.name}-{workers}-workers"
            commands.append(Step(name, (*run, *counts), after=(f"{epoch.name}-features",)))
    return commands


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    rows = []
    for name, result in figures.items():
        if name.endswith("-features"):
            continue
        label, workers, _ = name.split("-")
        epoch: Epoch = next(epoch_kind for epoch_kind in REAL.epochs if epoch_kind.name == label)
        later = result["epochs"][1:] or result["epochs"]
        seconds = median(timing["seconds"] for timing in later)
        checkpoints = median(timing["checkpoints"] for timing in later)
        loader = f"{result['loader']:,.0f}" if result["loader"] else "-"
        cells = (f"{label}, {workers} workers", f"{result['epochs'][0]['seconds']:.2f}", f"{seconds:.2f}")
        more = (f"{checkpoints:.2f}", share(result["waiting"]), loader, share(result["padding"]))
        rows.append((*cells, *more, goal(seconds, epoch.goal, bool(machine.name)), f"{epoch.paper:g} s"))
    header = ("data, loader", "first epoch, s", "later, s", "checkpoints, s", "waiting for the loader")
    texts = [
        "Training only, checkpoints separately; median of the epochs after the first. The goals are for one H200.",
        "If there are more images than features, features repeat; the file is in memory from the first epoch on.",
    ]
    header = (*header, "loader alone, questions/s", "padding", "goal", "the paper")
    return [" ".join(texts), "", *table(header, rows)]


EPOCHS = Part("epochs", "Epochs", steps, lines)
