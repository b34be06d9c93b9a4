"""What is going away says so for a release: deprecated names keep working, and tell what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from typing_extensions import deprecated as marked

Thing = TypeVar("Thing", bound=Callable)


class MmgenDeprecationWarning(FutureWarning):
    """Something of mmgen's that goes with a coming release. Shown to everybody, since recipes are run by users."""


def deprecated(since: str, removed: str, instead: str) -> Callable[[Thing], Thing]:
    """Marks a function, method or class that the release `since` still has and the release `removed` has no more.

    @deprecated(since="0.2", removed="0.3", instead="mmgen.parts.Embedder.describe")
    def labels(self, example): ...
    """
    return lambda thing: marked(
        _message(thing.__qualname__, since, removed, instead), category=MmgenDeprecationWarning
    )(thing)


def _message(name: str, since: str, removed: str, instead: str) -> str:
    return f"{name} is deprecated since mmgen {since} and goes with {removed}; use {instead}"
