"""A comparison as CSV, LaTeX and Markdown."""

import csv

import pytest

from mmgen.errors import RunError
from mmgen.report.compare import RunComparison
from mmgen.report.comparison_files import check_file, write_comparison
from mmgen.report.table import Spread

COMPARISON = RunComparison(
    ("a_run/default", "b"),
    (
        [
            ["step", "run", "BLEU-4", "R@1"],
            ["both", "a_run/default", "39.46 ± 1.50", "-"],
            ["both", "b", "12.00", "7.00"],
        ],
        "differences have 95 % intervals\nb: seed 0",
    ),
    {
        "a_run/default": {"both": {"BLEU-4": Spread(39.4567, 1.5), "R@1": None}},
        "b": {"both": {"BLEU-4": 12.0, "R@1": 7.0}},
    },
)


def test_scores_as_csv_are_not_rounded(tmp_path):
    write_comparison(COMPARISON, tmp_path / "scores.csv")
    with (tmp_path / "scores.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["run", "step", "score", "mean", "deviation"],
            ["a_run/default", "both", "BLEU-4", "39.4567", "1.5"],
            ["b", "both", "BLEU-4", "12.0", ""],
            ["b", "both", "R@1", "7.0", ""],
        ]


def test_tables_as_latex_escape_what_latex_would_read(tmp_path):
    write_comparison(COMPARISON, tmp_path / "table.tex")
    assert (
        (tmp_path / "table.tex").read_text(encoding="utf-8")
        == r"""% needs \usepackage{booktabs}

\begin{tabular}{llrr}
\toprule
step & run & BLEU-4 & R@1 \\
\midrule
both & a\_run/default & 39.46 $\pm$ 1.50 & - \\
both & b & 12.00 & 7.00 \\
\bottomrule
\end{tabular}

% differences have 95 % intervals
% b: seed 0
"""
    )


def test_markdown_is_what_is_printed(tmp_path):
    write_comparison(COMPARISON, tmp_path / "table.md")
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == f"{COMPARISON}\n"


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_computed(tmp_path):
    with pytest.raises(RunError, match=r"^--out table.xls: the name must end in .csv, .tex or .md$"):
        check_file((tmp_path / "table.xls").relative_to(tmp_path))
    check_file(None)
