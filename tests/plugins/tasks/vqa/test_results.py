"""Result files of VQA: read, scored and written in the format of the official evaluation."""

import json

import pytest
from kit.results import (
    ANNOTATIONS,
    PEOPLE,
    assert_read_again,
    assert_references_are_those_of,
    assert_refused,
    cells,
    score,
)
from mmgen_tasks import VqaAccuracy, VqaAnswers
from mmgen_tasks.vqa.results import number_or_text

from mmgen.errors import DataError
from mmgen.tensors import Example


def test_vqa_results_are_scored_with_intervals(files):
    answers = [(1, "Yes"), (2, "Red."), (3, "2")]
    results = [{"question_id": question_id, "answer": answer} for question_id, answer in answers]
    result = score(*files(ours_json=results), "--references", *files(val_json=ANNOTATIONS), "--metric", "vqa_accuracy")
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert {name: row[0] for name, row in table.items()} == {
        "metric": "value",
        "accuracy": "66.67",  # answers are not normalised where all people agree
        "yes/no": "0.00",
        "number": "100.00",
        "other": "100.00",
    }
    assert "3 examples\n" in result.output and "references per" not in result.output
    assert "no intervals: all examples have the same image" in result.output


def test_predictions_of_mmgen_are_scored(files):
    lines = [
        {"id": question_id, "value": {"label": answers[0], "probabilities": {}}}
        for question_id, (_, answers) in PEOPLE.items()
    ]
    ours = files(ours_jsonl="".join(json.dumps(line) + "\n" for line in lines))
    result = score(*ours, "--references", *files(val_json=ANNOTATIONS), "--metric", "vqa_accuracy")
    assert cells(result.output)["accuracy"][0] == "100.00"


def test_references_of_a_file_equal_those_of_the_data_set(files, tmp_path):
    questions = [{"question_id": int(question_id), "image_id": 9, "question": "what?"} for question_id in PEOPLE]
    _, truth = files(q_json={"questions": questions}, val_json=ANNOTATIONS)
    named = {"questions": {"val": ["q.json"]}, "annotations": {"val": ["val.json"]}}
    config = VqaAnswers(folder=tmp_path, train_split="val", test_split="val", **named)
    assert_references_are_those_of(config, VqaAccuracy, truth)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r_json", '{"answers": []}', "r.json: not a file of VQA results: the file has no list 'results'"),
        ("r_json", '[{"question_id": 1}]', "r.json: results[0]: has no 'answer'; its keys are: question_id"),
        ("r_json", '[{"question_id": 1, "answer": 2}]', "results[0]: answer must be a string, not a number"),
        ("r_json", json.dumps([{"question_id": 1, "answer": "a"}] * 2), "r.json: results[1]: duplicate id '1'"),
    ],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: VqaAccuracy.result_files().read(path, []), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"annotations": [{"question_id": 1, "answers": 3}]}', "annotations[0]: answers must be a list"),
        ('{"annotations": [{"question_id": 1, "answers": [{}]}]}', "annotations[0]: answers[0]: has no 'answer'"),
    ],
)
def test_references_that_cannot_be_used(files, text, words):
    (path,) = files(r_json=text)
    assert_refused(lambda: VqaAccuracy.result_files().read_references(path), words)


def test_written_results_are_read_again(tmp_path):
    values = {"262148000": "red", "9": "two dogs, é"}
    assert_read_again(VqaAccuracy, values, tmp_path / "w.txt")
    text = VqaAccuracy.result_files().write(values | {"9": {"label": "no"}}, [Example("262148000", {})])
    assert json.loads(text) == [{"question_id": 262148000, "answer": "red"}]


def test_missing_predictions_are_not_written():
    with pytest.raises(DataError, match="no prediction for '7'"):
        VqaAccuracy.result_files().write({}, [Example("7", {})])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("42", 42), ("007", "007"), ("", ""), ("-1", "-1"), ("٣", "٣"), ("1" * 18, int("1" * 18))]
    + [(digits * "9", digits * "9") for digits in (19, 400, 5000)],
)
def test_a_number_stays_the_id_that_it_was(text, expected):
    assert number_or_text(text) == expected
