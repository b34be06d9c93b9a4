"""The table on the page: intervals under values, the highest value of a column, and notes."""

from mmgen.evaluation.score import write_scores
from mmgen.examples import Example, Scores
from mmgen.report.page_table import BEST, page_table, row_intervals
from mmgen.report.table import Spread, Table
from mmgen.storage.run_folder import RunFolder

EXAMPLES = [Example(str(n), {}, ("a",), {"image": str(n // 2)}) for n in range(40)]
RIGHT = [100.0 * (n % 4 == 0) for n in range(40)]


def table(**changes) -> Table:
    steps = {"one": {"right": 25.0, "BLEU": 9.0}, "two": {"right": 20.0, "BLEU": 9.0}}
    return Table(
        **(
            {"columns": ("right", "BLEU"), "steps": steps, "references": {}, "published": {}, "notes": ("how",)}
            | changes
        )
    )


def scored_run(folder) -> RunFolder:
    """A run whose steps have two scores: one is a mean over examples, the other is not."""
    for step in ("one", "two"):
        write_scores(
            folder / "steps" / step, Scores({"right": 25.0, "BLEU": 9.0}, {"right": RIGHT, "BLEU": [8.0] * 40})
        )
    return RunFolder(folder)


def test_only_means_over_examples_have_intervals(tmp_path):
    intervals = row_intervals(scored_run(tmp_path), table(), EXAMPLES)
    assert intervals.keys() == {"one", "two"} and intervals["one"].keys() == {"right"}
    low, high = intervals["one"]["right"]
    assert 5 < low < 25 < high < 45
    shown = page_table(table(), intervals)
    (right, bleu), _ = (row["cells"] for row in shown["groups"][0])
    assert right == {"text": "25.00", "interval": f"{low:.1f}–{high:.1f}", "best": True} and bleu["interval"] == ""
    assert shown["notes"][0] == "how" and shown["notes"][1].startswith("Small figures: 95 % intervals, by a bootstrap")
    assert shown["notes"][2].startswith("No interval for BLEU: not a mean over examples;")


def test_no_interval_over_seeds_for_one_image_or_for_equal_values(tmp_path):
    run = scored_run(tmp_path)
    assert row_intervals(run, table(averaged=True), EXAMPLES) == {}
    assert row_intervals(run, table(), [Example(str(n), {}, ("a",), {"image": "0"}) for n in range(40)]) == {}
    write_scores(tmp_path / "steps/two", Scores({"right": 0.0}, {"right": [0.0] * 40}))
    assert row_intervals(run, table(), EXAMPLES)["two"] == {}


def test_the_highest_value_is_marked_unless_all_are_equal():
    steps = {"one": {"right": Spread(20.0, 9.0), "BLEU": 9.0}, "two": {"right": 19.999, "BLEU": 9.001}}
    steps["beams"] = {"right": 30.0, "BLEU": 9.0}
    shown = page_table(table(steps=steps, published={"P": {"right": 99.0}}, averaged=True), {})
    marked = {row["label"]: [cell["best"] for cell in row["cells"]] for group in shown["groups"] for row in group}
    assert marked == {"one": [False] * 2, "two": [False] * 2, "beams": [True, False], "P": [False] * 2}
    assert shown["notes"] == ["how", BEST.format(which="the highest")]
    alone = page_table(table(steps={"one": {"right": 25.0}}), {})
    assert alone["notes"] == ["how"] and not alone["groups"][0][0]["cells"][0]["best"]


def test_the_lowest_value_is_the_best_of_a_metric_that_should_be_low():
    steps = {"one": {"right": 20.0, "BLEU": 9.0}, "two": {"right": 10.0, "BLEU": 8.0}}
    shown = page_table(table(steps=steps, lower=frozenset({"BLEU"})), {})
    assert [[cell["best"] for cell in row["cells"]] for row in shown["groups"][0]] == [[True, False], [False, True]]
    assert shown["notes"][-1] == (
        "Bold: the best value of any step, the highest (of BLEU the lowest). If intervals overlap, the order may be "
        "due to chance"
    )
