"""Result files of RefCOCO: read, scored and written in the format of the official evaluation."""

import pytest
from kit.results import BOXES, assert_read_again, assert_refused, cells, score
from mmgen_tasks import BoxAccuracy


def test_boxes_are_scored_in_pixels_or_shares(files):
    ours = [{"id": n, "box": [0, 0, 50, 20 + n]} for n in range(3)]
    result = score(*files(ours_json=ours), "--references", *files(right_json=BOXES), "--metric", "box_accuracy")
    assert cells(result.output)["accuracy"][0] == "100.00", result.output


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r_json", '[{"id": 1, "box": [0, 0, 1]}]', "r.json: results[0]: a box must be four numbers"),
        ("r_json", '[{"id": 1, "box": [0, 0, 1, NaN]}]', "r.json: results[0]: a box must be four numbers"),
    ],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: BoxAccuracy.result_files().read(path, []), words)


@pytest.mark.parametrize(("text", "words"), [('[{"id": 1}]', "r.json: references[0]: has no 'box'; its keys are: id")])
def test_references_that_cannot_be_used(files, text, words):
    (path,) = files(r_json=text)
    assert_refused(lambda: BoxAccuracy.result_files().read_references(path), words)


def test_written_results_are_read_again(tmp_path):
    assert_read_again(BoxAccuracy, {"a": {"box": [0.1, 0.2, 0.3, 0.4]}}, tmp_path / "w.txt")
