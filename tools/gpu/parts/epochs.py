"""Epochs of the sizes of VQG_COCO and VQA, on made-up features, with what the loader takes of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import REAL, Epoch, Sizes
from ..table import goal, share, table


def steps(sizes: Sizes, work: Path) -> list[Step]:
    found = []
    for epoch in sizes.epochs:
        folder = work / epoch.name
        named = {"count": epoch.images, "stored": epoch.stored, "questions": epoch.questions}
        size = [word for name, value in named.items() for word in (f"--{name}", str(value))]
        make = ("-m", "tools.gpu.measures.data_set", str(folder), *sizes.shape, *size)
        found.append(Step(f"{epoch.name}-features", make, product=folder))
        for workers in epoch.workers:
            run = ("-m", "tools.gpu.measures.epochs", str(folder), *sizes.shape)
            counts = ("--epochs", str(epoch.epochs), "--workers", str(workers))
            name = f"{epoch.name}-{workers}-workers"
            found.append(Step(name, (*run, *counts), after=(f"{epoch.name}-features",)))
    return found


def lines(found: Mapping[str, Figures], machine: Machine) -> list[str]:
    rows = []
    for name, one in found.items():
        if name.endswith("-features"):
            continue
        label, workers, _ = name.split("-")
        epoch: Epoch = next(each for each in REAL.epochs if each.name == label)
        later = one["epochs"][1:] or one["epochs"]
        seconds = median(each["seconds"] for each in later)
        checkpoints = median(each["checkpoints"] for each in later)
        loader = f"{one['loader']:,.0f}" if one["loader"] else "-"
        cells = (f"{label}, {workers} workers", f"{one['epochs'][0]['seconds']:.2f}", f"{seconds:.2f}")
        more = (f"{checkpoints:.2f}", share(one["waiting"]), loader, share(one["padding"]))
        rows.append((*cells, *more, goal(seconds, epoch.goal, bool(machine.name)), f"{epoch.paper:g} s"))
    header = ("data, loader", "first epoch, s", "later, s", "checkpoints, s", "waiting for the loader")
    told = [
        "Learning alone, checkpoints told apart; median of the epochs behind the first. The goals are for one H200.",
        "Where there are more images than features, features repeat: the file is in memory from the first epoch on.",
    ]
    header = (*header, "loader alone, questions/s", "padding", "goal", "the paper")
    return [" ".join(told), "", *table(header, rows)]


EPOCHS = Part("epochs", "Epochs", steps, lines)
