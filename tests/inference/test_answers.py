"""Answers, shown or written line by line: a file that goes on after a stop, and shards that are merged."""

import json
from types import SimpleNamespace

import pytest

from mmgen.cli.answer_output import Output, answer_all
from mmgen.errors import DataError, RunError
from mmgen.examples import Generation, Prediction
from mmgen.features.extract import Shard
from mmgen.inference.answers import Answer, merged
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
    return SimpleNamespace(step="s", kind="label", names=names, answers=answer, chosen="the best", limits="")


def ask(answers, queries=QUERIES, out=None, shard=None, **named):
    lines = []
    output = Output(lambda line, kind: lines.append((line, kind)), out, shard)
    return answer_all(predictor(*answers, **named), queries, output), lines


def test_an_answer_is_a_line_of_json():
    text = Generation("q", "a dog", (5, 6), -0.12345)
    assert Answer("q", (text,)).as_json() == {"id": "q", "texts": [{"text": "a dog", "score": -0.1235}]}
    choice = Answer("q", prediction=Prediction("q", {"choice": 1}, 0.5), remarks=("cut",))
    assert choice.as_json() == {"id": "q", "value": {"choice": 1}, "score": 0.5, "remarks": ["cut"]}
    assert Answer("q", error="odd").as_json() == {"id": "q", "error": "odd"}


def test_a_file_has_a_line_for_every_query(tmp_path, capsys):
    out = tmp_path / "new" / "answers.jsonl"
    _, lines = ask([GOOD, BAD], out=out)
    assert lines == [] and [path.name for path in out.parent.iterdir()] == ["answers.jsonl"]
    assert [json.loads(line) for line in out.read_text().splitlines()] == [GOOD.as_json(), BAD.as_json()]
    shown = capsys.readouterr()
    assert f"{out}: 2 lines\n" in shown.out
    assert f'1 of 2 could not be answered; {out} has the reasons as "error"\n' in shown.err


def test_a_stopped_file_goes_on(tmp_path, capsys):
    """With whole lines only, and for the same queries only."""
    out, partial = tmp_path / "a.jsonl", tmp_path / ".a.jsonl.partial"
    out.write_text("of an earlier time")
    with pytest.raises(RunError) as error:
        ask([GOOD], out=out, stop="2")
    note = f"partial answers (1) are in {partial}; re-running the command continues"
    assert error.value.__notes__ == [note] and out.read_text() == "of an earlier time"
    partial.write_text(partial.read_text() + '{"id": "2", "te')  # killed
    answers, _ = ask([BAD], out=out)
    assert answers == [BAD] and not partial.exists()
    assert f"{partial}: 1 answers are kept; to start over, delete this file\n" in capsys.readouterr().err
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["1", "2"]
    partial.write_text('{"id": "3"}\n')
    with pytest.raises(RunError) as error:
        ask([GOOD, BAD], out=out)
    assert str(error.value) == f"{partial}: has answers to other queries, such as '3'; delete it"
    partial.write_text("3\n")
    with pytest.raises(DataError, match="is not a file of answers; delete it, and run the command again"):
        ask([GOOD, BAD], out=out)


def test_an_error_at_the_start_leaves_nothing(tmp_path):
    with pytest.raises(RunError):
        ask([], out=tmp_path / "a.jsonl", stop="1")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    for out, why in ((tmp_path / "file/a.jsonl", "File exists"), (tmp_path / ("x" * 250), "File name too long")):
        with pytest.raises(RunError) as error:
            ask([], out=out)
        assert str(error.value).startswith(f"{out}: cannot be written: {why}; ")


def test_shards_together_are_what_one_command_writes(tmp_path):
    queries = [Query(str(number)) for number in range(7)]
    answers = [Answer(query.id, prediction=Prediction(query.id, {"label": "yes"}, 0.5)) for query in queries]
    out = tmp_path / "a.jsonl"
    for number in (1, 3):
        ask(answers, queries, out, Shard(number, 3))
    with pytest.raises(DataError, match=r"a\.jsonl: a-2-of-3\.jsonl of 3 shards missing; run them with --shard"):
        merged(out)
    ask(answers, queries, out, Shard(2, 3))
    assert merged(out) == [answer.as_json() for answer in answers]
