"""What `mmgen info` says about a folder."""

from pathlib import Path

import pytest

from mmgen.errors import RunError
from mmgen.inference.describe import describe

STORED = Path(__file__).resolve().parents[1] / "kept_runs" / "writes" / "seed-0"


def test_a_run():
    assert describe(STORED).splitlines() == [
        f"{STORED}: a run of 'writes', profile default, seed 0",
        "| step  | reads             | gives | state    |",
        "|-------|-------------------|-------|----------|",
        "| words | caption           | text  | finished |",
        "| both  | image and caption | text  | finished |",
    ]


def test_another_folder(tmp_path):
    with pytest.raises(RunError) as error:
        describe(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}: no recipe.json in this folder; ")
