"""Result files: predictions as a task's official evaluation reads them, and as its leaderboard takes them."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..tensors import Example


class ResultFiles(abc.ABC):
    """The files of one task. A metric's config has them (`configs.MetricConfig.result_files`): who scores a task
    knows in which form its results are exchanged. Values of predictions are those of `tensors.Prediction`, or texts.

    name  what `mmgen predict --as` calls them
    """

    name: ClassVar[str]

    @abc.abstractmethod
    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        """Id of an example -> what a file predicts for it; what it predicts for none of these examples under an id of
        its own. Raises DataError, with the line or the place in the JSON."""

    @abc.abstractmethod
    def read_references(self, path: Path) -> list[Example]:
        """Examples with what predictions are judged by, out of the file that is published for it. Raises DataError."""

    @abc.abstractmethod
    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        """The text of a file of predictions for these examples, by their ids. Raises DataError where a prediction is
        missing, or is none of this task."""
