"""The galleries of the page: the metrics that its cards can be sorted by."""

from mmgen.report.galleries import metrics_of_examples


def test_metrics_that_are_right_or_wrong_come_first():
    scores = {
        "0-a": {"first": {"bleu": 12.5, "correct": 100.0}, "second": {"bleu": 80.0}},
        "0-b": {"first": {"bleu": 0.0, "correct": 0.0, "always": 100.0}, "second": {}},
    }
    metrics = metrics_of_examples(scores, 3, {"bleu"})
    assert [metric["name"] for metric in metrics] == ["correct", "bleu", "always"]  # "always" sorts nothing
    assert [metric["binary"] for metric in metrics] == [True, False, True]
    assert [metric["lower"] for metric in metrics] == [False, True, False]
    assert {metric["gallery"] for metric in metrics} == {3}
