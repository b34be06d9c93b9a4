"""Runs are compared in tables of the scores that they share, with the settings that differ."""

import pytest

from mmgen.errors import RunError
from mmgen.examples import Scores
from mmgen.report.compare import RunComparison, _changes, _group_steps, _without_repeats, check_file, write
from mmgen.scoring.table import Cell, Row, ScoreTable
from mmgen.storage.run_folder import differences


def training(all_epochs: int, first: int, second: int) -> dict:
    return {
        "training": {"epochs": all_epochs},
        "steps": {"first": {"training": {"epochs": first}}, "second": {"training": {"epochs": second}}},
    }


def test_a_changed_training_setting_is_reported_once_unless_a_step_goes_its_own_way():
    assert _without_repeats(differences(training(1, 1, 1), training(2, 2, 2)), 2) == ["training.epochs: 1 -> 2"]
    assert _without_repeats(differences(training(1, 1, 1), training(2, 2, 1)), 2) == [
        "training.epochs: 1 -> 2",
        "steps.first.training.epochs: 1 -> 2",
    ]
    assert _without_repeats(differences(training(1, 1, 1), training(1, 1, 3)), 2) == [
        "steps.second.training.epochs: 1 -> 3"
    ]


def test_what_only_one_run_has_is_named_without_its_keys():
    first = {"seed": 1, "inputs": {"image": {"type": "grid"}}, "steps": {"both": {"inputs": ["image"]}}}
    second = {"seed": 2, "inputs": {"image": {"type": "regions"}}, "steps": {"both": {"inputs": ["image"]}, "more": {}}}
    assert _changes(("a", first), ("b", second)) == [
        "seed: 1 -> 2",
        'inputs.image.type: "grid" -> "regions"',
        "steps.more: only in b",
    ]
    assert _changes(("b", second), ("a", first))[2:] == ["steps.more: only in b"]


def test_steps_that_share_no_score_have_a_table_each():
    scores = {
        "a": {"x": [Scores({"bleu": 1.0})], "y": [Scores({"accuracy": 2.0})]},
        "b": {"x": [Scores({"cider": 3.0})], "z": [Scores({"accuracy": 4.0})]},
    }
    assert _group_steps(scores) == [(["x"], ["bleu", "cider"]), (["y", "z"], ["accuracy"])]
    scores["b"]["z"] = [Scores({"accuracy": 4.0, "yes/no": 1.0, "number": 1.0})]  # another task's accuracy
    assert _group_steps(scores) == [
        (["x"], ["bleu", "cider"]),
        (["y"], ["accuracy"]),
        (["z"], ["accuracy", "yes/no", "number"]),
    ]


COMPARISON = RunComparison(
    (
        ScoreTable(
            ("BLEU-4", "R@1"),
            (
                Row(("both", "a_run"), {"BLEU-4": Cell(39.4567, 1.5)}),
                Row(("both", "<b>"), {"BLEU-4": Cell(12.0), "R@1": Cell(7.0)}),
            ),
            heads=("step", "run"),
        ),
        ScoreTable(
            ("BLEU-4",),
            (Row(("both", "<b>"), {"BLEU-4": Cell(-27.4567, interval=(-30.0, -25.0), p=0.001)}, "difference"),),
            heads=("step", "minus a_run"),
        ),
    ),
    ("95 %: how", "from a_run to <b>:", "  seed: 1 -> 2"),
)


def test_a_comparison_is_written_as_it_is_printed_as_latex_and_as_csv(tmp_path):
    write(COMPARISON, tmp_path / "table.md", digits=1)
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == (
        """\
| step | run   |     BLEU-4 | R@1 |
|------|-------|-----------:|----:|
| both | a_run | 39.5 ± 1.5 |   - |
| both | <b>   |       12.0 | 7.0 |

| step | minus a_run |               BLEU-4 |
|------|-------------|---------------------:|
| both | <b>         | -27.5 [-30.0, -25.0] |

95 %: how
from a_run to <b>:
  seed: 1 -> 2
"""
    )
    write(COMPARISON, tmp_path / "table.tex")
    latex = (tmp_path / "table.tex").read_text(encoding="utf-8")
    assert latex.startswith("% needs \\usepackage{booktabs}\n\n\\begin{tabular}{llrr}\n") and latex.endswith(
        "% 95 %: how\n% from a_run to <b>:\n%   seed: 1 -> 2\n"
    )
    write(COMPARISON, tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_text().splitlines() == [
        "step,run,kind,score,value,deviation,low,high,p",
        "both,a_run,step,BLEU-4,39.4567,1.5,,,",
        "both,<b>,step,BLEU-4,12.0,,,,",
        "both,<b>,step,R@1,7.0,,,,",
        "both,<b>,difference,BLEU-4,-27.4567,,-30.0,-25.0,0.001",
    ]
    with pytest.raises(RunError, match=r"table.xls: the name must end in .csv, .tex or .md$"):
        check_file(tmp_path / "table.xls")


def test_scores_are_chosen_by_name():
    chosen = COMPARISON.chosen(["R@1", "BLEU-4"])
    assert [table.columns for table in chosen.tables] == [("R@1", "BLEU-4"), ("BLEU-4",)]
    assert [table.columns for table in COMPARISON.chosen(["R@1"]).tables] == [("R@1",)]
    with pytest.raises(RunError, match="no score is called 'BLEU4'; did you mean 'BLEU-4'"):
        COMPARISON.chosen(["BLEU4"])


def test_a_comparison_shows_itself_in_a_notebook():
    assert repr(COMPARISON) == "<RunComparison: both a_run, both <b>>"
    shown = COMPARISON._repr_html_()
    assert (
        shown.count("<table>") == 2
        and "<td>&lt;b&gt;</td>" in shown
        and "<pre>95 %: how\nfrom a_run to &lt;b&gt;:" in shown
    )
