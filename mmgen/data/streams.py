"""Reads the examples of a stream by position, as the samples of a plan ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ..errors import DataError
from ..parts import Stream
from ..tensors import Example


class NoExamples(Sequence[Example]):
    """The other examples of a stream, which an objective cannot have: any use raises `error`."""

    def __init__(self, objective: str) -> None:
        self.error = DataError(
            f"'{objective}' draws other examples, which a stream does not have; train this objective on a data set "
            "with a length"
        )

    def __len__(self) -> int:
        raise self.error

    def __getitem__(self, place: Any) -> Any:
        raise self.error


class StreamExamples:
    """The examples of a stream by position. A position after the last one is reached by reading on; for
    another, the stream is read again."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self._next = stream, -1
        self._examples: Iterator[Example] = iter(())

    def __getstate__(self) -> dict[str, Any]:  # an open archive stays in its process
        return {"stream": self.stream}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["stream"])  # type: ignore[misc]

    def __getitem__(self, position: int) -> Example:
        if not 0 <= self._next <= position:
            self._examples, self._next = self.stream.read(position), position
        example = next(islice(self._examples, position - self._next, None), None)
        self._next = position + 1
        if example is None:
            raise DataError(f"the stream ends at position {position}; it must begin again after its last example")
        return example
