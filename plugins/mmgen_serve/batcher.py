"""Requests that wait are worked on together, in threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any


class Waiting(Future[Any]):
    """The result of an item, in the future. Items of one `kind` are worked on together."""

    def __init__(self, item: Any, kind: Hashable) -> None:
        super().__init__()
        self.item, self.kind = item, kind


@dataclass(eq=False)
class Batcher:
    """Threads that call `work` with the items of one kind that wait, the oldest first.

    work    from a kind and a list of its items to the list of their results
    most    items in a batch
    threads that work at a time
    """

    work: Callable[[Any, list[Any]], list[Any]]
    most: int
    threads: int = 1

    def __post_init__(self) -> None:
        self.unanswered: set[Waiting] = set()
        self._arriving: SimpleQueue[Waiting] = SimpleQueue()
        for _ in range(self.threads):
            threading.Thread(target=self._run, daemon=True).start()

    def submit(self, item: Any, kind: Hashable = None) -> Waiting:
        """The result of an item, in the future."""
        waiting = Waiting(item, kind)
        self.unanswered.add(waiting)
        waiting.add_done_callback(self.unanswered.discard)
        self._arriving.put(waiting)
        return waiting

    def _run(self) -> None:
        left: list[Waiting] = []
        while True:
            left = left or [self._arriving.get()]
            while len(batch := [waiting for waiting in left if waiting.kind == left[0].kind]) < self.most:
                try:
                    left.append(self._arriving.get_nowait())
                except Empty:
                    break
            batch = batch[: self.most]
            left = [waiting for waiting in left if waiting not in batch]
            if batch := [waiting for waiting in batch if waiting.set_running_or_notify_cancel()]:
                self._answer(batch)

    def _answer(self, batch: list[Waiting]) -> None:
        try:
            results = self.work(batch[0].kind, [waiting.item for waiting in batch])
        except Exception as error:
            for waiting in batch:
                waiting.set_exception(error)
        else:
            for waiting, result in zip(batch, results, strict=True):
                waiting.set_result(result)
