"""Tables of queries: columns are named as the inputs that they give."""

import json

import pytest
from click.testing import CliRunner
from kit import small_runs

from mmgen.cli import main
from mmgen.inference.load import load
from mmgen.inference.query import read_sources

TABLE = """\
image,caption
a,a red dog
"b","a dog, red"
c,
"""


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_of_any_spreadsheet_is_queries(tmp_path, delimiter):
    table = tmp_path / "ask.csv"
    text = TABLE.replace(",", delimiter).replace(f"dog{delimiter} red", "dog, red")
    table.write_text(text, encoding="utf-8-sig", newline="\r\n")
    assert [(query.id, dict(query.inputs), query.place) for query in read_sources([table])] == [
        ("ask.csv:2", {"image": "a", "caption": "a red dog"}, f"{table}:2"),
        ("ask.csv:3", {"image": "b", "caption": "a dog, red"}, f"{table}:3"),
        ("ask.csv:4", {"image": "c"}, f"{table}:4"),
    ]


def test_the_command_writes_for_a_table_and_names_lines(tmp_path):
    run, out = small_runs.runs() / "runs" / small_runs.STEP.parent.parent, tmp_path / "out.jsonl"
    (tmp_path / "ask.tsv").write_text(TABLE.replace('"a dog, red"', "a dog").replace(",", "\t"))
    done = CliRunner().invoke(
        main, ["generate", str(run), str(tmp_path / "ask.tsv"), "--step", "both", "--out", str(out)]
    )
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["id"] for line in lines] == ["ask.tsv:2", "ask.tsv:3", "ask.tsv:4"]
    assert lines[0]["texts"][0]["text"] == load(run).ask({"image": "a", "caption": "a red dog"}).value
    assert "ask.tsv:4: 'caption' is missing" in lines[2]["error"]
    assert "1 of 3 could not be answered; each answer has the reason" in done.output and done.exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("captoin\na\n", "ask.csv:2: unknown input 'captoin'; did you mean 'caption'?; available: "),
        ("image,caption\na\n", "ask.csv:2: values: 1, columns: 2; "),
    ],
)
def test_tables_that_are_refused_in_a_line(tmp_path, text, message):
    (tmp_path / "ask.csv").write_text(text)
    run = small_runs.runs() / "runs" / small_runs.STEP.parent.parent
    done = CliRunner().invoke(main, ["generate", str(run), str(tmp_path / "ask.csv")])
    assert done.exit_code == 1 and message in done.output and done.output.count("\n") == 1
