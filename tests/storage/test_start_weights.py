"""The digests of the published weights that steps started from."""

import json

import pytest

from mmgen.errors import RunError
from mmgen.storage import start_weights


def started(run, step, **files):
    folder = run / "steps" / step
    folder.mkdir(parents=True)
    (folder / start_weights.RECORD).write_text(json.dumps({"sha256": files}))
    return run


def test_runs_that_started_from_other_weights(tmp_path):
    first = started(tmp_path / "a", "pre", model="11")
    assert start_weights.digests(first) == {"pre": {"model": "11"}}
    same, unlike = started(tmp_path / "b", "pre", model="11"), started(tmp_path / "c", "pre", model="22")
    assert start_weights.unlike(same, first) == start_weights.unlike(tmp_path / "none", first) == ""
    assert start_weights.unlike(unlike, first) == "step 'pre' started from different weights"


def test_a_damaged_record(tmp_path):
    with pytest.raises(RunError, match=r"start.json: damaged: 'sha256' must contain strings; copy the file from"):
        start_weights.digests(started(tmp_path, "pre", model=7))
