"""Result files: the contract of formats that a task's official evaluation or leaderboard reads."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..examples import Example


class ResultFiles(abc.ABC):
    """The result files of one task. A metric's config lists them (`configs.MetricConfig.result_files`), since a
    metric knows the format of its task's results. Values of predictions are those of `examples.Prediction`, or texts.

    name  of the format in `mmgen predict --as`
    """

    name: ClassVar[str]

    @abc.abstractmethod
    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        """Id of an example -> the prediction in the file. A prediction for none of these examples gets an id that no
        example has. Raises DataError with the line or the place in the JSON."""

    @abc.abstractmethod
    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        """The text of a file of predictions for these examples, by their ids. Raises DataError if a prediction is
        missing or is not of this task."""
