"""Copies of examples in a temporary file, for data sets that make them one by one: a run makes each of them once."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence

from ..tensors import Example


class Copy:
    """The examples of a split in a temporary file without a name, which only this process can read. A copy that cannot
    be written (a full disk, a value that cannot be pickled) is left out: the data set then makes its examples again.

    complete  whether all examples are in the file
    """

    def __init__(self) -> None:
        self.complete = True
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with this object)

    def add(self, examples: Sequence[Example]) -> None:
        """Append a chunk of examples, unless an earlier one could not be written."""
        if self.complete:
            try:
                pickle.dump(examples, self._file, pickle.HIGHEST_PROTOCOL)
            except Exception:  # values may raise anything when they are pickled
                self.complete = False
                self._file.close()

    def chunks(self) -> Iterator[Sequence[Example]]:
        """The examples in the chunks in which they were added."""
        position = 0
        while True:
            self._file.seek(position)
            try:
                chunk = pickle.load(self._file)  # noqa: S301 -- written by this process
            except EOFError:
                return
            position = self._file.tell()
            yield chunk
