"""Several seeds of a recipe, and runs side by side: mean and spread in every table."""

import json
import shutil
import statistics
import sys
from pathlib import Path

import pytest
from kit.scoring import cells
from kit.toys import RECIPE, mmgen_here

from mmgen import report
from mmgen.data.datasets import Datasets
from mmgen.registry import installed
from mmgen.scoring.compare import cells_of
from mmgen.scoring.table import Cell
from mmgen.storage.run_folder import RunFolder

pytestmark = pytest.mark.slow  # every test starts commands or processes


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """The profile's folder with three seeds of a recipe."""
    folder = tmp_path_factory.mktemp("seeds")
    (folder / "toy.toml").write_text(RECIPE)
    (folder / "said.txt").write_text(mmgen_here(folder, "run", "toy.toml", "--seed", "4", "--seeds", "3").stdout)
    return folder / "runs/toy/default"


@pytest.fixture
def own_runs(runs, tmp_path) -> Path:
    """A copy of the three seeds, to be damaged."""
    shutil.copytree(runs, tmp_path / "default")
    return tmp_path / "default"


def reached(runs: Path, step: str, column: str) -> list[float]:
    return [
        json.loads((runs / f"seed-{seed}/steps/{step}/scores.json").read_text())["values"][column] for seed in (4, 5, 6)
    ]


def test_the_table_over_seeds_has_mean_and_deviation_of_what_each_reached(runs):
    table = cells((runs / "table.md").read_text())
    for step in ("first", "second"):
        for column, shown in zip(table["step"], table[step], strict=True):
            values = reached(runs, step, column)
            assert shown == f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
    assert "mean ± standard deviation over seeds 4, 5, 6" in (runs / "table.md").read_text()
    assert (runs / "table.md").read_text().split("\n\n", 1)[1].strip() in (runs.parents[2] / "said.txt").read_text()


def test_seeds_that_are_not_finished_are_left_out_of_the_rows_they_lack(runs, own_runs):
    (own_runs / "seed-6/steps/second/scores.json").unlink()
    folder = RunFolder(own_runs / "seed-4")
    recipe = folder.recipe(installed())
    ((_, averages),) = report.tables_with_seeds(recipe, folder, Datasets(recipe))
    assert averages.notes[0] == "mean ± standard deviation over seeds: first 4, 5, 6; second 4, 5"
    values = reached(runs, "second", "distinct")[:2]
    assert averages.of("step")["second"]["distinct"] == cells_of([{"distinct": value} for value in values])["distinct"]


def shifted(run: Path, step: str, column: str, more: float) -> None:
    """A run with higher scores in every example."""
    path = run / f"steps/{step}/scores.json"
    scores = json.loads(path.read_text())
    scores["values"][column] += more
    scores["per_example"][column] = [value + more for value in scores["per_example"][column]]
    path.write_text(json.dumps(scores))


def test_differences_have_intervals_over_examples_in_pairs_and_over_seeds(own_runs, tmp_path, monkeypatch):
    shutil.copytree(own_runs, tmp_path / "more")
    for seed in (4, 5, 6):
        shifted(tmp_path / f"more/seed-{seed}", "first", "relevance", 10.0)
    both = [own_runs, tmp_path / "more"]

    def difference(*paths: Path) -> Cell:
        return report.compare(paths)[-1].of("difference")["first"]["relevance"]

    single = difference(*(path / "seed-4" for path in both))
    assert single.value == pytest.approx(10) and single.interval == pytest.approx((10, 10))  # example by example
    several, values = difference(*both), reached(own_runs, "first", "relevance")
    low, high = several.interval
    assert several.value == pytest.approx(10) and (low < 10 < high if len(set(values)) > 1 else low == high)
    other_examples = "examples", lambda run, step: [run.label]
    monkeypatch.setattr(sys.modules["mmgen.report.compare"]._Run, *other_examples)
    assert "no difference: the runs' examples differ" in str(report.compare(both)[-1])


def test_a_copy_of_a_run_is_no_seed(own_runs):
    shutil.copytree(own_runs / "seed-4", own_runs / "seed-4.bak")
    assert "default: mean ± standard deviation over seeds 4, 5, 6\n" in mmgen_here(own_runs, "compare", ".").stdout
    assert {seed: folder.path.name for seed, folder in RunFolder(own_runs / "seed-4").seeds().items()} == {
        4: "seed-4",
        5: "seed-5",
        6: "seed-6",
    }
    assert RunFolder(own_runs / "seed-4.bak").seeds()[4].path.name == "seed-4.bak"
