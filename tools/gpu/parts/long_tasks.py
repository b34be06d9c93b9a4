"""Tasks that take long on a processor: statements about two pictures, choices, and the profile `long` of matching."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from . import main_job

PROFILES = {"statements": (), "choices": ("--profile", "visualbert"), "matching": ("--profile", "long")}  # by recipe


def steps(sizes: Sizes, work: Path) -> list[Step]:
    runs = ("--set", f'output="{work / "runs"}"')
    return [
        Step(name, ("-m", "mmgen", "run", f"recipes/{name}.toml", *profile, *runs, *sizes.long[name]), main_job.read)
        for name, profile in PROFILES.items()
    ]


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    titles = {name: [f"**{name}**", ""] for name in figures}
    return [line for name in figures for line in (*titles[name], *main_job.lines({"run": figures[name]}, machine), "")]


LONG_TASKS = Part("tasks", "Tasks that take long", steps, lines)
