"""Requests that wait are worked on together, in threads of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Waiting:
    """An item that waits for its result. Items of one `kind` are worked on together."""

    item: Any
    kind: Hashable
    result: Future[Any] = field(default_factory=Future)


class Batcher:
    """Threads that call `work` with the items of one kind that wait, the oldest first.

    work    from a list of items of one kind to the list of their results
    most    items in a batch
    threads that work at a time
    window  seconds that a batch waits for company, while `coming` says that some is on its way
    """

    def __init__(
        self,
        work: Callable[[Hashable, list[Any]], list[Any]],
        most: int,
        threads: int = 1,
        window: float = 0.0,
        coming: Callable[[], bool] = lambda: False,
    ) -> None:
        self.work, self.most, self.window, self.coming = work, most, window, coming
        self.unanswered = 0
        self._waiting: list[Waiting] = []
        self._changed = threading.Condition()
        for _ in range(threads):
            threading.Thread(target=self._run, daemon=True).start()

    def submit(self, item: Any, kind: Hashable = None) -> Future[Any]:
        """The result of an item, in the future."""
        waiting = Waiting(item, kind)
        with self._changed:
            self._waiting.append(waiting)
            self.unanswered += 1
            self._changed.notify_all()
        waiting.result.add_done_callback(self._count_answered)
        return waiting.result

    def _count_answered(self, result: Future[Any]) -> None:
        with self._changed:
            self.unanswered -= 1

    def _run(self) -> None:
        while True:
            self._answer(self._next_batch())

    def _next_batch(self) -> list[Waiting]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting)
            kind, until = self._waiting[0].kind, time.monotonic() + self.window
            while len(batch := [one for one in self._waiting if one.kind == kind]) < self.most and self.coming():
                if not self._changed.wait(max(0.0, until - time.monotonic())):
                    break
            batch = batch[: self.most]
            self._waiting = [one for one in self._waiting if one not in batch]
        return [one for one in batch if one.result.set_running_or_notify_cancel()]

    def _answer(self, batch: list[Waiting]) -> None:
        """Set the results of a batch. If the work fails, each item is worked on alone, so that it fails alone."""
        if not batch:
            return
        try:
            results = self.work(batch[0].kind, [one.item for one in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0].result.set_exception(error)
            else:
                for one in batch:
                    self._answer([one])
        else:
            for one, result in zip(batch, results, strict=True):
                one.result.set_result(result)
