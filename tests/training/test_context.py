"""The step that runs: who reports a lack of memory, and in which words."""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
from kit.training import RecordedProgress

from mmgen.recipe.tables import Step
from mmgen.training.context import StepContext


class Full:
    """Work that needs too much memory for more than one piece."""

    def __call__(self, pieces):
        if len(pieces) > 1:
            raise MemoryError
        return pieces


@pytest.mark.parametrize("rank", [None, 0, 1])
def test_retries_are_reported_by_every_process(rank, caplog):
    accelerator = SimpleNamespace(num_processes=1 if rank is None else 2, process_index=rank or 0)
    accelerator.is_main_process = not rank
    progress = RecordedProgress()
    context = StepContext("s", Step(inputs=("a",), train=("backbone",)), 0, Path(), accelerator, progress)
    with caplog.at_level(logging.WARNING, "mmgen"):
        results = list(context.retry("writing", "use fewer texts", named=str).over(["a", "b"], Full()))
    assert [result for _, result in results] == [["a"], ["b"]]
    (line,) = [*progress.lines, *(record.getMessage() for record in caplog.records)]
    place = "step 's', writing" if rank is None else f"step 's', writing, process {rank}"
    assert line.startswith(place) and bool(progress.lines) == (not rank)
