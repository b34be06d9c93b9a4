"""Hands a run's events to its callbacks, each in a separate thread behind a bounded queue; or to another process.

A callback can neither change nor end anything. What goes wrong is reported once, and the callback is left out from
then on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from queue import Empty, Full, Queue, SimpleQueue
from threading import Thread
from typing import Any

from ..configs import CallbackConfig
from ..errors import MmgenError
from ..registry import Qualified, built, part_calls

MOST_EVENTS = 1000  # in a queue
PATIENCE = 10.0  # seconds that all callbacks together are waited for when a run ends


@dataclass(frozen=True)
class Event:
    """A call of a method of `parts.Callback`."""

    method: str
    arguments: tuple[Any, ...]


class Events:
    """Receives the events of a run; this one ignores them."""

    def send(self, method: str, *arguments: Any) -> None:
        """Report an event: a method of `parts.Callback` and its arguments."""


class Callbacks(Events):
    """Hands the events of a run to its callbacks.

    say   prints a line
    """

    def __init__(self, configs: Mapping[str, CallbackConfig], say: Callable[[str], None]) -> None:
        self._say, self._problems = say, SimpleQueue[str]()
        self._watchers = [_Watcher(name, config, self._problems.put) for name, config in configs.items()]

    def __enter__(self) -> Callbacks:
        for watcher in self._watchers:
            watcher.start()
        return self

    def send(self, method: str, *arguments: Any) -> None:
        for watcher in self._watchers:
            watcher.receive(Event(method, _copy_record(arguments)))
        self._print_problems()

    def __exit__(self, *error: object) -> None:
        deadline = time.monotonic() + PATIENCE
        for watcher in self._watchers:
            watcher.end()
        for watcher in self._watchers:
            watcher.wait(deadline)
        self._print_problems()

    def _print_problems(self) -> None:
        """Print the problems so far, in the thread of the run."""
        while not self._problems.empty():
            self._say(self._problems.get())


class _Watcher(Thread):
    """The thread of one callback."""

    def __init__(self, name: str, config: CallbackConfig, report: Callable[[str], None]) -> None:
        super().__init__(daemon=True, name=f"callbacks.{name}")
        self.place = Qualified(f"callbacks.{name}", "callback", type(config))
        self.config, self.report = config, report
        self.queue: Queue[Event | None] = Queue(MOST_EVENTS)
        self.failed = self.behind = False

    def receive(self, event: Event) -> None:
        try:
            if not self.failed:
                self.queue.put_nowait(event)
        except Full:
            if not self.behind:
                self.report(f"{self.place}: is {MOST_EVENTS:,} events behind; events are left out from now on")
            self.behind = True

    def run(self) -> None:
        try:
            callback = built(self.config, self.config.build, self.place.name)
            while (event := self.queue.get()) is not None:
                with part_calls(self.place, event.method):
                    getattr(callback, event.method)(*event.arguments)
            with part_calls(self.place, "close"):
                callback.close()
        except MmgenError as error:
            self._fail(str(error))
        except BaseException as error:  # sys.exit in a plugin
            self._fail(f"{self.place}: raises {type(error).__name__}")

    def _fail(self, problem: str) -> None:
        self.failed = True
        where = "" if problem.startswith(str(self.place)) else f"{self.place}: "
        self.report(f"{where}{problem}; the run continues without this callback")
        while True:  # nothing waits for room in the queue
            try:
                self.queue.get_nowait()
            except Empty:
                return

    def end(self) -> None:
        """No event follows. Of a full queue, an event makes room."""
        with contextlib.suppress(Full):
            self.queue.put_nowait(None)
            return
        with contextlib.suppress(Empty):
            self.queue.get_nowait()
        self.queue.put_nowait(None)

    def wait(self, deadline: float) -> None:
        """Wait until all events are handled, until the deadline."""
        self.join(max(0.0, deadline - time.monotonic()))
        if self.is_alive():
            self.report(f"{self.place}: is not finished after {PATIENCE:g} seconds; its last events are lost")


def _copy_record(value: Any) -> Any:
    """A copy of tables, lists, and dataclasses with such values. Arrays and functions are shared."""
    if isinstance(value, Mapping):
        return {name: _copy_record(item) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{field.name: _copy_record(getattr(value, field.name)) for field in fields(value) if field.init}
        )
    return type(value)(map(_copy_record, value)) if type(value) in (list, tuple) else value


class Forwarded(Events):
    """Sends events to another process, which has the callbacks."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._send = send

    def send(self, method: str, *arguments: Any) -> None:
        """Without pictures, which may be anything that draws them."""
        if method == "on_examples":
            step, update, examples = arguments
            arguments = step, update, [replace(example, pictures=()) for example in examples]
        self._send(Event(method, arguments))
