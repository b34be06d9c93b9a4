"""The benchmark: systems do the same work, counts equal sums made by hand, results are printed in every format."""

import json

import pytest
from click.testing import CliRunner
from mmgen_bench.flops import BERT2BERT, CAUSAL, OURS

from mmgen.cli import main

pytestmark = pytest.mark.slow


OPTIONS = ["--layers", "1", "--width", "16", "--words", "1500", "--rounds", "1", "--batch", "2"]


def test_the_command_prints_json_with_every_round():
    result = CliRunner().invoke(main, ["bench", "train", *OPTIONS, "-k", "2", "--json", "--without", "naive"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [(row["case"], row["system"], len(row["seconds"])) for row in report["results"]] == [
        ("K = 2", name, 1) for name in (OURS, BERT2BERT, CAUSAL)
    ]
    assert report["settings"]["shape"]["width"] == 16 and report["settings"]["rounds"] == 1


def test_the_command_prints_markdown():
    result = CliRunner().invoke(
        main, ["bench", "decode", *OPTIONS, "--search", "greedy", "--tokens", "4", "--markdown"]
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:]] for line in lines]
    assert rows[0][:4] == ["", "system", "ms", "spread"] and rows[2][:2] == ["greedy", "ours"]
    assert "measured on 2 images with one question each" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "--width", "30"],
            "error: --width 30: must be a multiple of 4 (a multiple of 64 gives heads of BERT's size)",
        ),
        (["train", "--device", "abc"], "error: --device abc: not available here: "),
        (["scaling", "--svg", "no/where.svg"], "error: --svg no/where.svg: folder no does not exist; create it"),
    ],
)
def test_mistakes_are_one_line(arguments, message):
    result = CliRunner().invoke(main, ["bench", *arguments])
    assert result.exit_code == 1 and result.output.startswith(message) and result.output.count("\n") == 1
