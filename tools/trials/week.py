"""The trial of a week of three people: a case is a job of `tools.week`, in their order.

Jobs build on what the jobs before have left, so their folder stays beside the journal, and a later call goes on in it.
A job that failed runs again with `--again`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tools.week.__main__ import Desk, chosen

from .piece import Case, Outcome

JOBS = [job for _, job in chosen(None)]
TRIES, COUNT = "jobs", len(JOBS)
KEEPS = True


def cycle() -> list[str]:
    return [job.name for job in JOBS]


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Case]:
    """After the last job the first comes again."""
    desk = Desk(folder)

    def case(number: int) -> Outcome:
        job = JOBS[number % len(JOBS)]
        try:
            seconds = desk.do(job)
        except click.ClickException as error:
            return Outcome(job.name, 1, (error.message,), {"steps": len(job.steps)})
        parts = {"steps": len(job.steps), "processor s": round(seconds["processor"])}
        return Outcome(job.name, 1, parts=parts)

    yield case
