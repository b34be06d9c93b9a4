"""The tasks that take longest on a processor: statements about two pictures, three seeds."""

from __future__ import annotations

from pathlib import Path

from ..run import Part, Step
from ..sizes import Sizes
from . import main_job

RECIPE = "recipes/statements.toml"


def steps(sizes: Sizes, work: Path) -> list[Step]:
    run = ("-m", "mmgen", "run", RECIPE, "--set", f'output="{work / "runs"}"', *sizes.long)
    return [Step("run", run, main_job.read)]


LONG_TASKS = Part("tasks", "Statements about two pictures", steps, main_job.lines)
