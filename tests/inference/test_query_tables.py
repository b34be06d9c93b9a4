"""Tables of queries are read as the run's data set reads the tables that it trains on."""

import json
import shutil

import pytest
from click.testing import CliRunner
from kit import small_runs

from mmgen.cli import main
from mmgen.inference.load import load
from mmgen.inference.query import read_sources
from mmgen.inference.query_tables import table_reader

TABLE = """\
picture,words,question,level
a,a red dog---a dog,is it red ?,easy
a,a red dog---a dog,is it a dog ?,hard
"b","a dog, red",what is it ?,easy
c,,what is it ?,easy
"""


@pytest.fixture
def run(tmp_path):
    """A run whose data are tables with names of their own."""
    shutil.copytree(small_runs.runs() / "runs", tmp_path / "runs")
    run = tmp_path / "runs" / small_runs.STEP.parent.parent
    recipe = json.loads((run / "recipe.json").read_text())
    recipe["data"] = {"type": "csv", "folder": str(tmp_path), "columns": {"image": "picture", "caption": "words"}}
    (run / "recipe.json").write_text(json.dumps(recipe))
    return run


def queries(run, table, step=None):
    read = read_sources([table], table=table_reader(run, step))
    return [(query.id, dict(query.inputs), query.place.rpartition("/")[2]) for query in read]


def test_columns_are_those_of_the_data(run, tmp_path, caplog):
    table = tmp_path / "ask.csv"
    table.write_text(TABLE)
    with caplog.at_level("INFO"):
        assert queries(run, table) == [
            # the third line only has another question
            ("ask.csv:2", {"image": "a", "caption": "a red dog"}, "ask.csv:2"),
            ("ask.csv:4", {"image": "b", "caption": "a dog, red"}, "ask.csv:4"),
            ("ask.csv:5", {"image": "c"}, "ask.csv:5"),
        ]
    assert f"{table}: unused columns: question, level" in caplog.text


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_table_of_any_spreadsheet_asks_the_same(run, tmp_path, delimiter):
    (tmp_path / "ask.csv").write_text(TABLE)
    german = TABLE.replace(",", delimiter).replace(f"dog{delimiter} red", "dog, red")
    (tmp_path / "german.csv").write_text(german, encoding="utf-8-sig", newline="\r\n")
    expected = [query[1] for query in queries(run, tmp_path / "ask.csv")]
    assert [query[1] for query in queries(run, tmp_path / "german.csv")] == expected


def test_the_command_writes_for_a_table_and_names_lines(run, tmp_path):
    (tmp_path / "ask.tsv").write_text(TABLE.replace('"a dog, red"', "a dog").replace(",", "\t"))
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(
        main, ["generate", str(run), str(tmp_path / "ask.tsv"), "--step", "both", "--out", str(out)]
    )
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["id"] for line in lines] == ["ask.tsv:2", "ask.tsv:4", "ask.tsv:5"]
    assert lines[0]["texts"][0]["text"] == load(run).ask({"image": "a", "caption": "a red dog"}).value
    assert "ask.tsv:5: 'caption' is missing" in lines[2]["error"]
    assert f'1 of 3 could not be answered; {out} has the reasons as "error"' in done.output and done.exit_code == 0


def test_an_export_reads_tables_as_its_run_does(run, tmp_path):
    (tmp_path / "ask.csv").write_text(TABLE)
    load(run).save(tmp_path / "export", extractor=False)
    assert queries(tmp_path / "export", tmp_path / "ask.csv") == queries(run, tmp_path / "ask.csv")


def test_ids_pictures_and_prompts(run, tmp_path):
    """Rows of one id are one query, and a picture may lie beside the table or in the data's folder of pictures."""
    recipe = json.loads((run / "recipe.json").read_text())
    recipe["data"] |= {"columns": {}, "images": "pictures", "separator": "|"}
    (run / "recipe.json").write_text(json.dumps(recipe))
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "far.png").write_bytes(b"x")
    (tmp_path / "near.png").write_bytes(b"x")
    table = tmp_path / "ask.csv"
    table.write_text("id,image_id,captions\n1,near.png,a|b\n2,far.png,c\n2,far.png,d\n")
    far = str(tmp_path / "pictures" / "far.png")
    assert queries(run, table) == [
        ("1", {"image": "near.png", "caption": "a"}, "ask.csv:2"),
        ("2", {"image": far, "caption": "c"}, "ask.csv:3"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ask.csv:1: no column is an input: the columns are none; inputs are image, caption"),
        ("question\nwhy ?\n", "ask.csv:1: no column is an input: the columns are question; inputs are image, caption"),
        ("words,words\na,b\n", "ask.csv:1: the column 'words' occurs 2 times; keep one of them"),
        ("picture,words\na\n", "ask.csv:2: values: 1, columns: 2; "),
    ],
)
def test_tables_that_are_refused_in_a_line(run, tmp_path, text, message):
    (tmp_path / "ask.csv").write_text(text)
    done = CliRunner().invoke(main, ["generate", str(run), str(tmp_path / "ask.csv")])
    assert done.exit_code == 1 and message in done.output and done.output.count("\n") == 1
