"""The one table of scores, in every form."""

from dataclasses import replace

import pytest

from mmgen.errors import MmgenError
from mmgen.progress import table
from mmgen.scoring.table import Cell, Row, ScoreTable, chosen, write

SCORES = ScoreTable(
    ("BLEU-4", "R@1", "loss"),
    (
        Row(("a_run", "both"), {"BLEU-4": Cell(39.4567, 1.5), "loss": Cell(2.0)}),
        Row(("b", "both"), {"BLEU-4": Cell(12.0, interval=(10.0, 14.0)), "R@1": Cell(7.0), "loss": Cell(1.0)}),
        Row(("people", ""), {"R@1": Cell(99.0)}, "reference"),
        Row(("a_run minus b", "both"), {"BLEU-4": Cell(-0.001, interval=(-1.5, 0.0), p=0.04)}, "difference"),
    ),
    ("how",),
    title="texts",
    lower=frozenset({"loss"}),
    heads=("run", "step"),
)


def test_markdown_is_readable_in_a_terminal():
    assert SCORES.markdown() == (
        """texts:

| run           | step |              BLEU-4 |   R@1 | loss |
|---------------|------|--------------------:|------:|-----:|
| a_run         | both |        39.46 ± 1.50 |     - | 2.00 |
| b             | both |               12.00 |  7.00 | 1.00 |
| people        |      |                   - | 99.00 |    - |
| a_run minus b | both | +0.00 [-1.50, 0.00] |     - |    - |

how"""
    )


def test_few_rows_are_shown_side_by_side_with_their_intervals():
    assert table(SCORES.by_score(digits=1)) == (
        """\
| run    | a_run both | b both |         95 % | people  | a_run minus b both |        95 % |     p |
|--------|-----------:|-------:|-------------:|--------:|-------------------:|------------:|------:|
| BLEU-4 | 39.5 ± 1.5 |   12.0 | 10.0 to 14.0 |       - |               +0.0 | -1.5 to 0.0 | 0.040 |
| R@1    |          - |    7.0 |            - |    99.0 |                  - |           - |     - |
| loss   |        2.0 |    1.0 |            - |       - |                  - |           - |     - |"""
    )


def test_latex_escapes_and_has_minus_signs():
    assert SCORES.latex(digits=1) == (
        r"""\begin{tabular}{llrrr}
\toprule
run & step & BLEU-4 & R@1 & loss \\
\midrule
a\_run & both & 39.5 $\pm$ 1.5 & - & 2.0 \\
b & both & 12.0 & 7.0 & 1.0 \\
people &  & - & 99.0 & - \\
a\_run minus b & both & +0.0 [$-$1.5, 0.0] & - & - \\
\bottomrule
\end{tabular}
% how"""
    )


def test_tables_are_written_by_the_ending_of_the_name(tmp_path):
    for name in ("a.csv", "a.md", "a.tex"):
        write([SCORES], tmp_path / name, digits=1)
    lines = (tmp_path / "a.csv").read_text().splitlines()  # not rounded, without unknown scores
    assert lines[:2] == ["run,step,kind,score,value,deviation,low,high,p", "a_run,both,step,BLEU-4,39.4567,1.5,,,"]
    assert lines[-1] == "a_run minus b,both,difference,BLEU-4,-0.001,,-1.5,0.0,0.04"
    assert (tmp_path / "a.md").read_text() == SCORES.markdown(1) + "\n"
    assert (tmp_path / "a.tex").read_text() == f"% needs \\usepackage{{booktabs}}\n\n{SCORES.latex(1)}\n"
    with pytest.raises(MmgenError, match=r"a.xls: the name must end in .csv, .tex, .md$"):
        write([SCORES], tmp_path / "a.xls")


def test_scores_are_chosen_by_name():
    assert [shown.columns for shown in chosen([SCORES, replace(SCORES, notes=())], ["loss", "R@1"])] == [
        ("loss", "R@1")
    ] * 2
    with pytest.raises(MmgenError, match="--columns: unknown name 'BLEU4'; did you mean 'BLEU-4'"):
        chosen([SCORES], ["BLEU4"])


def test_the_best_value_is_the_highest_or_the_lowest_unless_all_are_shown_alike():
    assert SCORES.best() == {"BLEU-4": "39.46 ± 1.50", "loss": "1.00"}
    alike = ScoreTable(("x",), (Row(("a",), {"x": Cell(1.0)}), Row(("b",), {"x": Cell(1.001)})))
    assert alike.best() == {}
