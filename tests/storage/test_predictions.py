"""Damaged lines of predictions are named."""

import json

import pytest

from mmgen.errors import RunError
from mmgen.storage import predictions


def test_a_damaged_line_is_reported(tmp_path):
    (tmp_path / predictions.FILE).write_text('{"id": "e", "value": 1, "score": 0.5}\n{"id": "e"}\n')
    with pytest.raises(RunError, match=r"predictions.jsonl:2: damaged: value.Field required; delete the file"):
        predictions.read(tmp_path)


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        ("boxes", "[[0, 0, 1, 1]]", ""),
        ("boxes", "[[0, 0, 1]]", "not a valid boxes: 0.List should have at least 4 items"),
        ("label", '{"label": 1}', "not a valid label: label.Input should be a valid string"),
        ("a plugin's own", "[{}]", ""),
    ],
)
def test_values_are_checked_by_their_kind(tmp_path, kind, value, problem):
    (tmp_path / predictions.FILE).write_text(f'{{"id": "e", "value": {value}, "score": 0.5}}\n')
    if not problem:
        assert predictions.read(tmp_path, kind)[0].value == json.loads(value)
        return
    with pytest.raises(RunError, match=rf"predictions.jsonl:1: damaged: {problem}.*; delete the file and run again"):
        predictions.read(tmp_path, kind)
