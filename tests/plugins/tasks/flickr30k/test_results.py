"""Result files of Flickr30K Entities: read, scored and written in the format of the official evaluation."""

import pytest
from kit.results import BOXES, assert_read_again, assert_refused, cells, score
from mmgen_tasks import PhraseRecall


def test_phrases_are_scored_in_pixels_or_shares(files):
    ours = [{"id": n, "boxes": [[90, 90, 91, 91]] * n + [[0, 0, 50, 40]]} for n in range(3)]
    result = score(
        *files(ours_json=ours),
        *("--references", *files(right_json=BOXES)),
        *("--metric", "phrase_recall", "--set", "phrase_recall.by_phrase_type=true"),
    )
    assert {name: row[0] for name, row in cells(result.output).items() if name != "metric"} == {
        "people": "33.33",
        "R@1": "33.33",
        "R@5": "100.00",
        "R@10": "100.00",
        "upper bound": "100.00",
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("r_json", '[{"id": 1, "boxes": 3}]', "results[0]: boxes must be a list of boxes, not a number")],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: PhraseRecall.result_files().read(path, []), words)


def test_written_results_are_read_again(tmp_path):
    values = {"a": [[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 1.0, 1.0]], "b": []}
    assert_read_again(PhraseRecall, values, tmp_path / "w.txt")
