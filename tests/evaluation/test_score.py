"""Scores of a step: the columns of its metrics."""

from mmgen.examples import Scores


def test_two_metrics_of_one_type_have_separate_columns():
    from mmgen.evaluation.score import merge_metrics

    first, second = Scores({"bleu": 1.0, "only": 3.0}, {"bleu": [1.0]}, ("a",)), Scores({"bleu": 2.0}, {}, ("a",))
    assert merge_metrics({"short": first, "long": second}) == Scores(
        {"short.bleu": 1.0, "only": 3.0, "long.bleu": 2.0}, {"short.bleu": [1.0]}, ("a",)
    )
