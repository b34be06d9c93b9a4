"""How `mmgen compare` names runs. Its tables: tests/runs/test_seeds.py, and tests/transcripts."""

from pathlib import Path

import pytest

from mmgen.report.short_paths import tell_apart


@pytest.mark.parametrize(
    "paths, labels",
    [
        (["runs/vqa/sample/seed-0"], ["seed-0"]),
        (["runs/vqa/sample/seed-0", "runs/vqg/sample/seed-0"], ["vqa", "vqg"]),
        (["runs/vqa/sample", "runs/vqg/sample/seed-0"], ["vqa/sample", "vqg/sample/seed-0"]),
        (["runs/vqa", "runs/vqa/seed-0"], ["vqa", "vqa/seed-0"]),
        (["a/one.json", "a/two.json", "b/one.json"], ["a/one.json", "a/two.json", "b/one.json"]),
    ],
)
def test_labels_differ_where_paths_do(paths, labels):
    assert tell_apart([Path(path) for path in paths]) == labels
