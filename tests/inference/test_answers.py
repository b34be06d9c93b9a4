"""Answers, shown or written line by line: a file that goes on after a stop."""

import json
from types import SimpleNamespace

import pytest
from kit.refusals import refusal

from mmgen.cli.answers import answer_all
from mmgen.errors import RunError
from mmgen.examples import Prediction
from mmgen.inference.answers import Answer
from mmgen.inference.query import Query

QUERIES = [Query("1"), Query("2", place="q.jsonl:2")]
GOOD = Answer("1", prediction=Prediction("1", {"label": "yes"}, 0.75), remarks=("cut",))
BAD = Answer("2", error="q.jsonl:2: no image")


def predictor(*answers, stop=None):
    """Gives these answers, by id; asked about `stop`, raises an error."""
    by_id = {answer.id: answer for answer in answers}

    def answer(queries, options, seed):
        for query in queries:
            if query.id == stop:
                raise RunError("out of memory")
            yield by_id[query.id]

    names = SimpleNamespace(reads="image")
    return SimpleNamespace(step="s", kind="label", names=names, answers=answer, chosen="the best")


def ask(answers, queries=QUERIES, out=None, **named):
    answer_all(predictor(*answers, **named), queries, out)


def test_a_stopped_file_goes_on(tmp_path, capsys):
    """With whole lines only, and for the same queries only."""
    out, partial = tmp_path / "new/a.jsonl", tmp_path / "new/.a.jsonl.partial"
    out.parent.mkdir()
    out.write_text("of an earlier time")
    with pytest.raises(RunError):
        ask([GOOD], out=out, stop="2")
    assert out.read_text() == "of an earlier time"
    partial.write_text(partial.read_text() + '{"id": "2", "te')  # killed
    ask([BAD], out=out)  # only the other one
    shown = capsys.readouterr()
    assert f"{partial}: 1 answers are kept; to start over, delete this file\n" in shown.err
    assert f"{out}: 2 answers, 1 with remarks\n" in shown.out
    assert "1 of 2 could not be answered; each answer has the reason\n" in shown.err
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"id": "1", "value": {"label": "yes"}, "score": 0.75, "remarks": ["cut"]},
        {"id": "2", "error": "q.jsonl:2: no image"},
    ]
    assert [path.name for path in out.parent.iterdir()] == ["a.jsonl"]
    partial.write_text('{"id": "3"}\n')
    assert refusal(ask, [GOOD, BAD], out=out) == f"{partial}: has answers to other queries; delete it"
    partial.write_text("3\n")
    advice = "is not a file of answers; delete it, and run the command again"
    assert advice in refusal(ask, [GOOD, BAD], out=out)
    (tmp_path / "file").touch()
    assert "a.jsonl: cannot be written: File exists; " in refusal(ask, [], out=tmp_path / "file/a.jsonl")
