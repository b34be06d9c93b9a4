"""Result files of VCR: read, scored and written in the format of the official evaluation."""

import json
import random
import re

import pytest
from kit.results import ITEMS, VCR, assert_read_again, assert_references_are_those_of, assert_refused, cells, score
from mmgen_tasks import ChoiceAccuracy, Vcr

from mmgen.errors import DataError
from mmgen.tensors import Example


def test_vcr_probabilities_are_scored(files):
    truth = "".join(json.dumps(item) + "\n" for item in ITEMS)
    result = score(*files(ours_csv=VCR), "--references", *files(val_jsonl=truth), "--metric", "choice_accuracy")
    assert result.exit_code == 0, result.output
    # rationales given the right answer: 3, 2 and 1 are the likeliest, and right
    assert {name: row[0] for name, row in cells(result.output).items() if name != "metric"} == {
        "Q->A": "66.67",
        "QA->R": "100.00",
        "Q->AR": "66.67",
    }
    assert re.search(r"Q->AR +\| +66.67 \| +0.00 to 100.00", result.output)


def test_references_of_a_file_equal_those_of_the_data_set(files, tmp_path):
    (truth,) = files(val_jsonl="".join(json.dumps(item) + "\n" for item in ITEMS))
    config = Vcr(folder=tmp_path, train_split="val", test_split="val", subtask="both")
    assert_references_are_those_of(config, ChoiceAccuracy, truth)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r_csv", "annot_id,answer_0\n", "r.csv:1: no column 'answer_1'; VCR's file has annot_id and 20"),
        ("r_csv", VCR.replace("0.7", "high", 1), "r.csv:2: answer_0 must be a number, not 'high'"),
        ("r_csv", VCR.replace("0.7", "nan", 1), "r.csv:2: answer_0 must be a number, not 'nan'"),
        ("r_csv", VCR + "val-9,1\n", "r.csv:5: 2 cells, but the header has 21 columns"),
        ("r_csv", VCR + VCR.splitlines()[1], "r.csv:5: duplicate id 'val-0'"),
    ],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: ChoiceAccuracy.result_files().read(path, []), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps({**ITEMS[0], "answer_label": 4}), "r.json:1: answer_label must be a number from 0"),
        ('{"annot_id": "v"}', "r.json:1: has no 'img_fn'; its keys are: annot_id"),
    ],
)
def test_references_that_cannot_be_used(files, text, words):
    (path,) = files(r_json=text)
    assert_refused(lambda: ChoiceAccuracy.result_files().read_references(path), words)


def test_rationales_need_examples_with_the_right_answer(files):
    form, rationale = ChoiceAccuracy.result_files(), Example("val-0-rationale", {}, labels={"choice": 3})
    with pytest.raises(DataError, match=r"'val-0-rationale' needs the right answer, which these examples do not have"):
        form.read(*files(r_csv=VCR), [rationale])
    every = [Example(f"val-0-rationale-{k}", {}) for k in range(4)]
    values = form.read(*files(r_csv=VCR), every)
    assert [values[example.id]["choice"] for example in every] == [3, 0, 0, 0]
    assert values["val-1"]["choice"] == 1  # no example is about it: pairing results with examples reports that


def test_written_results_are_read_again(tmp_path):
    draw = random.Random(0)
    shares = [[draw.random() for _ in range(4)] for _ in range(10)]
    ids = [
        f"{item}-{subtask}"
        for item in ("test-0", "test-1")
        for subtask in ("answer", *(f"rationale-{k}" for k in range(4)))
    ]
    values = {
        example_id: {"choice": row.index(max(row)), "probabilities": row}
        for example_id, row in zip(ids, shares, strict=True)
    }
    assert_read_again(ChoiceAccuracy, values, tmp_path / "w.txt")
    header, first, _ = (tmp_path / "w.txt").read_text().splitlines()
    assert header.startswith("annot_id,answer_0,answer_1,answer_2,answer_3,rationale_conditioned_on_a0_0,")
    assert len(first.split(",")) == 21 and first.startswith("test-0,")


def test_missing_predictions_are_not_written():
    answers = [Example("test-0-answer", {}, facts={"item": "test-0"})]
    values = {"test-0-answer": {"choice": 0, "probabilities": [1.0, 0.0, 0.0, 0.0]}}
    with pytest.raises(
        DataError, match=r"no prediction for 'test-0-rationale-0': VCR's file has the rationales of all"
    ):
        ChoiceAccuracy.result_files().write(values, answers)
