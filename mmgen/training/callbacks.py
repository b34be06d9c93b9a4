"""Hands a run's events to its callbacks, or to another process. A callback that raises is reported and left out."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..configs import CallbackConfig
from ..errors import blame
from ..parts import Callback


class Events:
    """Receives the events of a run; this one ignores them."""

    def send(self, method: str, *arguments: Any) -> None:
        """Report an event: a method of `parts.Callback` and its arguments."""


class Callbacks(Events):
    """Calls the callbacks of a run in turn. They get copies of records. `say`: prints a line."""

    def __init__(self, configs: Mapping[str, CallbackConfig], say: Callable[[str], None]) -> None:
        self._configs, self._say = configs, say
        self._callbacks: dict[str, Callback] = {}

    def __enter__(self) -> Callbacks:
        for name, config in self._configs.items():
            with self._left_out(name):
                self._callbacks[name] = config.build()
        return self

    def send(self, method: str, *arguments: Any) -> None:
        for name, callback in list(self._callbacks.items()):
            copies = [copy.deepcopy(value) if isinstance(value, dict) else value for value in arguments]
            with self._left_out(name):
                getattr(callback, method)(*copies)

    def __exit__(self, *error: object) -> None:
        self.send("close")

    @contextlib.contextmanager
    def _left_out(self, name: str) -> Iterator[None]:
        """Leave the callback out if it raises."""
        try:
            yield
        except (Exception, SystemExit) as error:  # sys.exit in a plugin
            self._callbacks.pop(name, None)
            problem = blame(error) or f"{type(error).__name__}: {error}"
            self._say(f"callbacks.{name}: {problem}; the run continues without this callback")


class Forwarded(Events):
    """Sends events to another process, which has the callbacks, as tuples of a method and its arguments."""

    def __init__(self, send: Callable[[tuple[Any, ...]], None]) -> None:
        self._send = send

    def send(self, method: str, *arguments: Any) -> None:
        self._send((method, *arguments))
