"""Damaged lines of predictions are named."""

import pytest

from mmgen.errors import RunError
from mmgen.storage import predictions


def test_a_damaged_line_is_reported(tmp_path):
    (tmp_path / predictions.FILE).write_text('{"id": "e", "value": 1, "score": 0.5}\n{"id": "e"}\n')
    with pytest.raises(RunError, match=r"predictions.jsonl:2: damaged: value.Field required; delete the file"):
        predictions.read(tmp_path)
