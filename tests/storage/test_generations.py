"""The lines of `generations.jsonl`."""

import json

import pytest

from mmgen import scoring
from mmgen.errors import RunError
from mmgen.examples import Generation
from mmgen.storage import generations

TEXTS = [
    [Generation("1", "what ?\u2028 why ?", (5, 6), -1.0), Generation("1", "who ?", (7,), -2.0)],
    [Generation("2", "", (), 0.5, "confidence")],
]


def write(folder, *lines):
    (folder / "generations.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_texts_come_back_as_they_were_written(tmp_path):
    write(tmp_path, *map(generations.as_line, TEXTS))
    assert generations.is_complete(tmp_path) and generations.read(tmp_path) == TEXTS
    assert generations.best(tmp_path) == {"1": TEXTS[0][0], "2": TEXTS[1][0]}
    assert "score_kind" not in generations.as_line(TEXTS[0]) and "confidence" in generations.as_line(TEXTS[1])


def test_a_step_that_has_not_run(tmp_path):
    assert not generations.is_complete(tmp_path)
    with pytest.raises(RunError, match=r"generations.jsonl: missing; has this step been run\?"):
        generations.read(tmp_path)


@pytest.mark.slow
def test_a_line_separator_inside_a_text_ends_no_line(tmp_path):
    row = {"id": "a", "text": "one\u2028two\x85three", "tokens": [1], "score": -1.0}
    (tmp_path / "generations.jsonl").write_text(json.dumps([row], ensure_ascii=False) + "\n", encoding="utf-8")
    assert generations.read(tmp_path)[0][0].text == row["text"]
    assert scoring.read_predictions(tmp_path / "generations.jsonl") == {"a": [row["text"]]}
