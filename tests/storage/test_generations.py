"""The lines of `generations.jsonl`."""

import json

import pytest
from kit.refusals import refusal
from mmgen_metrics.scoring import files as scoring

from mmgen.examples import Generation
from mmgen.storage import generations

TEXTS = [
    [Generation("1", "what ?\u2028 why ?", (5, 6), -1.0), Generation("1", "who ?", (7,), -2.0)],
    [Generation("2", "", (), 0.5, "confidence")],
]


def test_texts_come_back_as_they_were_written(tmp_path):
    lines = "".join(f"{generations.as_line(texts)}\n" for texts in TEXTS)
    (tmp_path / "generations.jsonl").write_text(lines, encoding="utf-8")
    assert generations.read(tmp_path) == TEXTS
    assert generations.best(tmp_path) == {"1": TEXTS[0][0], "2": TEXTS[1][0]}
    assert lines.count("score_kind") == 1 and "passes" not in lines and "prompt" not in lines
    assert scoring.read_predictions(tmp_path / "generations.jsonl")["1"] == [text.text for text in TEXTS[0]]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, ": missing; has this step been run?"),
        (b"", ":1: damaged: "),
        (b"[]\n", ":1: damaged: "),
        (json.dumps([{"id": "a", "text": "x", "tokens": [1], "score": "high"}]).encode(), ":1: damaged: 0.score: "),
    ],
)
def test_a_missing_or_damaged_file(tmp_path, content, problem):
    path = tmp_path / "generations.jsonl"
    if content is not None:
        path.write_bytes(content)
    said = refusal(generations.read, tmp_path)
    assert said.startswith(f"{path}{problem}")
