"""What long work tells people while it goes on. Stages talk to a `Progress`; the command line shows it with rich."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Advance = Callable[..., None]  # advance(steps=1, text="loss 2.31")


class Progress:
    """Says nothing; what stages get when nobody watches."""

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "") -> Iterator[Advance]:
        """A piece of work of `total` steps (None: unknown); call what it yields as steps are done."""
        yield lambda steps=1, text="": None

    def say(self, text: str) -> None:
        """A line that stays."""


class Bars(Progress):
    """Bars in a terminal, with throughput; where there is no terminal, one line when a task is done."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(highlight=False, soft_wrap=True)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, soft_wrap=True, width=140)  # a log file has room

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "") -> Iterator[Advance]:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        rate = TextColumn("{task.fields[rate]}")
        columns = [TextColumn("{task.description:<34}"), BarColumn(24), MofNCompleteColumn(), rate, TimeElapsedColumn()]
        with Progress(*columns, TimeRemainingColumn(), TextColumn("{task.fields[text]}"), console=self.console) as bars:
            task = bars.add_task(label, total=total, text="", rate="")

            def advance(steps: int = 1, text: str = "") -> None:
                speed = bars.tasks[0].finished_speed or bars.tasks[0].speed
                rate = f"{speed:.0f} {unit}/s" if speed and unit else ""
                bars.update(task, advance=steps, rate=rate, **({"text": text} if text else {}))

            yield advance
