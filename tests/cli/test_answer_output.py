"""Answers, printed or written to a file line by line."""

import json
from types import SimpleNamespace

import pytest

from mmgen.cli.answer_output import Output, answer_all, choose_output
from mmgen.errors import MmgenError
from mmgen.examples import Prediction
from mmgen.inference.answers import Answer
from mmgen.inference.query import Query

QUERIES = [Query("1"), Query("2", place="q.jsonl:2")]
GOOD = Answer("1", prediction=Prediction("1", {"label": "yes"}, 0.75), remarks=("cut",))
BAD = Answer("2", error="q.jsonl:2: no image")


def ask(answers, queries=QUERIES, out=None):
    sizes, lines = [], []

    def answer(queries, options, batch_size, seed):
        sizes.append(batch_size)
        return iter(answers)

    def show(line, kind):
        lines.append((line, kind))

    predictor = SimpleNamespace(
        step="s", kind="label", names=SimpleNamespace(reads="image"), answers=answer, chosen="the best", limits=""
    )
    return answer_all(queries, lambda: (predictor, None), ("predicting", "predicted"), Output(show, out)), lines, sizes


def test_answers_are_shown_one_by_one(capsys):
    answers, lines, sizes = ask([GOOD, BAD])
    assert answers == [GOOD, BAD] and sizes == [1]  # the first answer soon
    assert lines == [(GOOD.as_json(), "label"), (BAD.as_json(), "label")]
    assert capsys.readouterr().err.splitlines() == [
        "1: cut",
        "1 of 2 could not be answered; the reasons are above",
        "predicted by step 's', the best; it reads image",
    ]


def test_a_file_has_a_line_for_every_query(tmp_path, capsys):
    out = tmp_path / "answers.jsonl"
    _, lines, sizes = ask([GOOD, BAD], out=out)
    assert lines == [] and sizes == [16]
    assert [json.loads(line) for line in out.read_text().splitlines()] == [GOOD.as_json(), BAD.as_json()]
    said = capsys.readouterr()
    assert f"{out}: 2 lines\n" in said.out
    assert f'1 of 2 could not be answered; {out} has the reasons as "error"\n' in said.err


def test_nothing_could_be_read():
    with pytest.raises(MmgenError, match="^q.jsonl:2: no image$"):
        ask([BAD], QUERIES[1:])  # the only query
    with pytest.raises(MmgenError, match="^could not read any of the input$"):
        ask([BAD, BAD])


def test_a_shard_needs_a_file():
    with pytest.raises(MmgenError, match="^--shard 1/2: requires --out FILE$"):
        choose_output(print, None, "1/2")
