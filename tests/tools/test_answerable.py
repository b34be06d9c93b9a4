"""The table of the metric answerable: its figures by hand, and the questions of a run beside the truth."""

import json

import pytest
from kit import toys

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run
from tools.answerable import ELSEWHERE, PEOPLE, Judged, auc, main, report, row

KEPT = toys.Path(__file__).parents[1] / "kept_runs" / "predicts" / "seed-0"


def judged(answerable, answered, confidence, answer="red", form="what color"):
    answers = ["red"] if answerable else []
    return Judged("both", "test-0", "what?", form, answerable, answers, answered, answer, confidence)


QUESTIONS = [
    judged(True, True, 0.9),
    judged(True, True, 0.8, "blue"),
    judged(True, False, 0.3),
    judged(False, True, 0.6),
    judged(False, False, 0.3),
    judged(None, True, 0.7, form="is it bigger"),
]


def test_a_row_by_hand():
    balanced = (100 * 2 / 3 + 50) / 2
    area = 100 * (2 + 2 + 0.5) / 6  # 0.9 and 0.8 are above both, 0.3 is as high as one
    assert row("both", QUESTIONS) == [
        "both", "6", "1", "60.00", "66.67", "50.00", "60.00", f"{balanced:.2f}", f"{area:.2f}", "50.00",
    ]  # fmt: skip
    assert row("none", [])[3:] == ["-"] * 7
    assert auc([0.5], []) is None


def test_the_table_has_rows_by_source_and_by_form():
    by_source, by_form = report(QUESTIONS).split("\n\n")
    assert [line.split()[1] for line in by_source.split("\n")[2:]] == ["both", "all"]
    assert [line.split()[1] for line in by_form.split("\n")[2:]] == ["what", "is"]


@pytest.mark.slow
def test_a_run_beside_the_truth(tmp_path, no_page, capsys):
    steps = {"first": {"inputs": ["caption"], "train": ["backbone"]}}
    (tmp_path / "toy.toml").write_text(toys.recipe(output=str(tmp_path / "runs"), metrics=None, steps=steps))
    folder = run(load(tmp_path / "toy.toml", installed())[0]).path
    capsys.readouterr()
    main([str(folder), "--answerer", str(KEPT)])
    text = capsys.readouterr().out
    assert (folder / "answerable.md").read_text() == text and "threshold 0.5, 18 questions" in text
    questions = json.loads((folder / "answerable.json").read_text())
    by_source = {source: [q for q in questions if q["source"] == source] for source in ("first", PEOPLE, ELSEWHERE)}
    assert [len(group) for group in by_source.values()] == [6, 6, 6]
    assert all(question["answerable"] is not False for question in by_source[PEOPLE])
    assert any(question["answerable"] is False for question in by_source[ELSEWHERE])
