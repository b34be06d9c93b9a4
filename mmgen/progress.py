"""What long work tells people while it goes on. Stages talk to a `Progress`; the command line shows it with rich."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

EVERY = 20.0  # seconds between lines where there is no terminal
Advance = Callable[..., None]  # advance(steps=1, text="loss 2.31")


class Progress:
    """Says nothing; what stages get when nobody watches."""

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        """A piece of work of `total` steps (None: unknown), `done` of them earlier; call what it yields as steps are
        done."""
        yield lambda steps=1, text="": None

    def say(self, text: str) -> None:
        """A line that stays."""


class Bars(Progress):
    """Bars in a terminal, with throughput; elsewhere (a log file) a line now and then, and one when a task is done."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(highlight=False, soft_wrap=True)

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        shown = self._bar if self.console.is_terminal else self._lines
        with shown(label, total, unit, done) as advance:
            yield advance

    @contextlib.contextmanager
    def _bar(self, label: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        rate = TextColumn("{task.fields[rate]}")
        columns = [
            TextColumn("{task.description:<26}", markup=False),
            BarColumn(24),
            MofNCompleteColumn(),
            rate,
            TimeElapsedColumn(),
        ]
        with Progress(
            *columns, TimeRemainingColumn(), TextColumn("{task.fields[text]}", markup=False), console=self.console
        ) as bars:
            task = bars.add_task(label, total=total, completed=done, text="", rate="")

            def advance(steps: int = 1, text: str = "") -> None:
                speed = bars.tasks[0].finished_speed or bars.tasks[0].speed
                rate = f"{speed:.0f} {unit}/s" if speed and unit else ""
                changed: dict[str, Any] = {"rate": rate, "text": text} if text else {"rate": rate}
                bars.update(task, advance=steps, **changed)

            yield advance

    @contextlib.contextmanager
    def _lines(self, label: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
        began = told = time.monotonic()
        before, last = done, ""

        def line() -> str:
            seconds = time.monotonic() - began
            count = f"{done}/{total}" if total is not None else str(done)
            rate = f"{(done - before) / seconds:6.0f} {unit}/s" if unit and seconds > 0 else ""
            return f"{label:<26} {count:>14} {rate:<22} {seconds:5.0f} s  {last}".rstrip()

        def advance(steps: int = 1, text: str = "") -> None:
            nonlocal done, last, told
            done, last = done + steps, text or last
            if time.monotonic() - told > EVERY:
                told = time.monotonic()
                self.say(line())

        yield advance
        self.say(line())
