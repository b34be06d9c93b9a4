"""The table on the page: intervals under values, the best value of a column, and notes."""

from mmgen.report.page_table import BEST, page_table
from mmgen.scoring.table import Cell, Row, ScoreTable


def table(*rows: Row, **changes) -> ScoreTable:
    return ScoreTable(("right", "BLEU"), rows, ("how",), **changes)


def step(label: str, right: Cell, bleu: float = 9.0, kind="step") -> Row:
    return Row((label,), {"right": right, "BLEU": Cell(bleu)}, kind)


def test_intervals_are_shown_under_the_values():
    shown = page_table(table(step("one", Cell(25.0, interval=(10.0, 40.0))), step("two", Cell(20.0))))
    (right, bleu), _ = (row["cells"] for row in shown["groups"][0])
    assert right == {"text": "25.00", "interval": "10.0–40.0", "best": True} and bleu["interval"] == ""
    assert shown["notes"][0] == "how" and shown["notes"][1].startswith("Small figures: 95 % intervals, by a bootstrap")
    assert shown["notes"][2] == "No interval for BLEU: not a function of sums over examples"


def test_the_highest_value_is_marked_unless_all_are_equal():
    rows = step("one", Cell(20.0, 9.0)), step("two", Cell(19.999), 9.001), step("beams", Cell(30.0))
    shown = page_table(table(*rows, step("P", Cell(99.0), kind="published")))
    marked = {row["label"]: [cell["best"] for cell in row["cells"]] for group in shown["groups"] for row in group}
    assert marked == {"one": [False] * 2, "two": [False] * 2, "beams": [True, False], "P": [False] * 2}
    assert shown["notes"] == ["how", BEST.format(which="the highest")]
    alone = page_table(table(step("one", Cell(25.0))))
    assert alone["notes"] == ["how"] and not alone["groups"][0][0]["cells"][0]["best"]


def test_the_lowest_value_is_the_best_of_a_metric_that_should_be_low():
    shown = page_table(table(step("one", Cell(20.0)), step("two", Cell(10.0), 8.0), lower=frozenset({"BLEU"})))
    assert [[cell["best"] for cell in row["cells"]] for row in shown["groups"][0]] == [[True, False], [False, True]]
    assert shown["notes"][-1] == BEST.format(which="the highest (of BLEU the lowest)")


def test_a_published_row_follows_the_step_of_its_name():
    rows = step("both", Cell(1.0)), step("chance", Cell(0.5), kind="reference")
    published = step("both", Cell(2.0), kind="published"), step("other", Cell(3.0), kind="published")
    groups = page_table(table(*rows, *published))["groups"]
    assert [[(row["label"], row["kind"]) for row in group] for group in groups] == [
        [("both", "step"), ("published", "published under")],
        [("chance", "reference")],
        [("other", "published")],
    ]
