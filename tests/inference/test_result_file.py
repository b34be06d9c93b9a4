"""Predictions for a full split in the files of official evaluations, which score as in the run. More is in
tests/transcripts/predictions.txt."""

import csv
import json

import pytest
from kit import small_runs

from mmgen.inference.result_file import result_file
from mmgen.storage.generations import read_predictions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run():
    return small_runs.drawn("predicts")


def test_answers_are_written_as_vqas_results_for_any_split_and_settings(run):
    rows = json.loads(result_file(run, "vqa"))
    predictions = read_predictions(run / "steps/answers")
    assert [(row["question_id"], row["answer"]) for row in rows] == [(p.id, p.value["label"]) for p in predictions]
    validation = json.loads(result_file(run, "vqa", ["answers"], "val"))
    assert validation and all(row["question_id"].startswith("val-") for row in validation)
    few = json.loads(result_file(run, "vqa", ["answers"], sets=["data.test_size=1"]))
    assert 0 < len(few) < len(rows) and few == rows[: len(few)]


def test_rationales_of_all_answers_are_written_for_vcr(run):
    sets = ["steps.choices.data.subtask=every"]
    rows = list(csv.DictReader(result_file(run, "vcr", ["choices"], sets=sets).splitlines()))
    shares = {p.id: pytest.approx(p.value["probabilities"], abs=1e-5) for p in read_predictions(run / "steps/choices")}
    assert len(shares) == 2 * len(rows) and len(rows[0]) == 21
    for row in rows:
        groups = ("answer", *(f"rationale_conditioned_on_a{answer}" for answer in range(4)))
        answer, *rationales = ([float(row[f"{group}_{k}"]) for k in range(4)] for group in groups)
        item = row["annot_id"]
        assert answer == shares[f"{item}-answer"] and shares[f"{item}-rationale"] in rationales  # of the right answer
