"""Damaged lines of predictions are named."""

import pytest

from mmgen.errors import RunError
from mmgen.storage import predictions


def test_a_damaged_line_is_reported(tmp_path):
    (tmp_path / predictions.FILE).write_text('{"id": "e", "value": 1, "score": 0.5}\n{"id": "e"}\n')
    with pytest.raises(RunError, match=r"predictions.jsonl:2: damaged: value.Field required; delete the file"):
        predictions.read(tmp_path)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('{"image": [0.5], "caption": [1]}', ""),
        ('{"image": [0.5]}', "not a valid vectors: Dictionary should have at least 2 items"),
        ('{"image": [0.5], "caption": []}', "not a valid vectors: caption.List should have at least 1 item"),
        ("[[0.5], [1]]", "not a valid vectors: Input should be a valid dictionary"),
    ],
)
def test_vectors_are_checked(tmp_path, value, problem):
    (tmp_path / predictions.FILE).write_text(f'{{"id": "e", "value": {value}, "score": 0.5}}\n')
    if not problem:
        assert predictions.read(tmp_path, "vectors")[0].value == {"image": [0.5], "caption": [1]}
        return
    with pytest.raises(RunError, match=rf"predictions.jsonl:1: damaged: {problem}.*; delete the file and run again"):
        predictions.read(tmp_path, "vectors")
