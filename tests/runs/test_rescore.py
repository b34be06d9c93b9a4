"""`mmgen score RUN`: a finished run's texts are scored again, with its recipe's metrics or others."""

import json
from pathlib import Path

import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]  # every test starts commands

RECIPE = (
    toys.recipe(data={"train_size": 16, "test_size": 4})
    + """
[steps.beams]
start = "second"
train = []
decoding = { num_beams = 3 }
"""
)
KEPT = "scores are not saved; use --json FILE, or change [metrics] and run `mmgen run` to score the run again"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A folder with a finished run; one step writes with the weights of another."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "toy.toml").write_text(RECIPE)
    done = mmgen_here(folder, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    return folder


def contents(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (run / PLACE).rglob("*") if path.is_file() and path.name != ".lock"}


def test_the_recipes_metrics_give_the_runs_own_table(run):
    before = contents(run)
    done = mmgen_here(run, "score", PLACE)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    table_lines = [line for line in (run / PLACE / "table.md").read_text().splitlines() if line.startswith("|")]
    assert rows == table_lines and any(row.startswith("| beams ") for row in rows)
    assert done.stdout.splitlines()[-1] == KEPT
    assert contents(run) == before


def test_other_metrics_with_settings_and_a_file(run, tmp_path):
    before, out = contents(run), tmp_path / "scores.json"
    done = mmgen_here(run, "score", PLACE, "--metric", "diversity", "--metric", "meaning", "--json", out)
    assert done.returncode == 0, done.stderr
    assert "distinct-1" in done.stdout and done.stdout.splitlines()[-1] == f"{out}: written"
    rows = json.loads(out.read_text())
    assert list(rows) == ["first", "second", "beams"]
    assert rows["first"]["values"].keys() > {"distinct-1"} and len(rows["first"]["per_example"]["id"]) == 4
    saved_scores = json.loads((run / PLACE / "steps/first/scores.json").read_text())["values"]
    assert saved_scores.items() <= rows["first"]["values"].items()
    assert contents(run) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--metric", "diversty"), "--metric diversty: unknown metric; did you mean 'diversity'?; choose from: "),
        (("--partial",), "--partial: only for files of predictions; a run folder accepts --metric, --set and --json"),
        (("--json", PLACE / "recipe.json"), f"--json {PLACE}/recipe.json: is also an input file and would be"),
        (("--set", "variety.n=2"), "--set variety.n=2: write METRIC.KEY=VALUE; the metrics are: meaning"),
    ],
)
def test_mistakes_are_a_line(run, arguments, said):
    done = mmgen_here(run, "score", PLACE, *arguments)
    assert done.returncode == 1 and done.stderr.startswith(f"error: {said}") and done.stderr.count("\n") == 1, (
        done.stderr
    )


def test_what_is_no_run_is_a_line(run, tmp_path):
    assert mmgen_here(run, "score", tmp_path).stderr == (
        f"error: {tmp_path}: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)\n"
    )
    without = mmgen_here(run, "score", "toy.toml")
    assert without.returncode == 2
    assert without.stderr.endswith(
        "Error: Missing option '--references'; only a run folder can be scored without references.\n"
    )
