"""One-line errors, and the run whose files are damaged."""

import shutil
from pathlib import Path

import pytest

from kit.small_runs import STEP, runs
from mmgen.errors import MmgenError


def refusal(act, *arguments, **options) -> str:
    """The one-line error message."""
    with pytest.raises(MmgenError) as error:
        act(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def copied_run(folder: Path) -> Path:
    """A copy of a small run's folder."""
    shutil.copytree(runs() / "runs", folder / "runs")
    return folder / "runs" / STEP.parent.parent
