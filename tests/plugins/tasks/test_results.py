"""Options of `mmgen score` that do not fit the metrics of tasks give one line."""

import pytest
from kit.results import ANNOTATIONS, score


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--metric", "vqa_accuracy", "--metric", "pair_accuracy"),
            "--metric: vqa_accuracy and pair_accuracy score different kinds of predictions; use one at a time",
        ),
        (
            ("--metric", "diversity", "--metric", "box_accuracy"),
            "--metric: diversity and box_accuracy score different kinds of predictions; use one at a time",
        ),
        (("--metric", "vqa_accuracy"), "references have no prediction (2, 3); --partial scores the 1 that have both"),
    ],
)
def test_arguments_that_do_not_fit_give_one_line(files, arguments, words):
    ours, truth = files(ours_json=[{"question_id": 1, "answer": "yes"}], val_json=ANNOTATIONS)
    result = score(ours, "--references", truth, *arguments)
    assert result.exit_code == 1 and words in result.output and len(result.output.splitlines()) == 1
