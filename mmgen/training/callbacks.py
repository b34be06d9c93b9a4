"""Hands a run's events to its callbacks, or to another process. A callback that raises is reported and left out."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..configs import CallbackConfig
from ..errors import MmgenError
from ..parts import Callback
from ..registry import Qualified, built, part_calls


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
    """Calls the callbacks of a run in turn. They get copies of records. `say`: prints a line."""

    def __init__(self, configs: Mapping[str, CallbackConfig], say: Callable[[str], None]) -> None:
        self._configs, self._say = configs, say
        self._callbacks: dict[Qualified, Callback] = {}

    def __enter__(self) -> Callbacks:
        for name, config in self._configs.items():
            place = Qualified(f"callbacks.{name}", "callback", type(config))
            with self._left_out(place):
                self._callbacks[place] = built(config, config.build, place.name)
        return self

    def send(self, method: str, *arguments: Any) -> None:
        for place, callback in list(self._callbacks.items()):
            copies = [copy.deepcopy(value) if isinstance(value, dict) else value for value in arguments]
            with self._left_out(place), part_calls(place, method):
                getattr(callback, method)(*copies)

    def __exit__(self, *error: object) -> None:
        self.send("close")

    @contextlib.contextmanager
    def _left_out(self, place: Qualified) -> Iterator[None]:
        """Leave the callback out if it raises."""
        try:
            yield
        except (MmgenError, SystemExit) as error:  # sys.exit in a plugin
            self._callbacks.pop(place, None)
            problem = str(error) if isinstance(error, MmgenError) else "raises SystemExit"
            where = "" if problem.startswith(str(place)) else f"{place}: "
            self._say(f"{where}{problem}; the run continues without this callback")


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
