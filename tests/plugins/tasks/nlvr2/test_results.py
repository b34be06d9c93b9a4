"""Result files of NLVR2: read, scored and written in the format of the official evaluation."""

import json

import pytest
from kit.results import PAIRS, assert_read_again, assert_references_are_those_of, assert_refused, cells, score
from mmgen_tasks import Nlvr2, PairAccuracy

from mmgen.errors import DataError
from mmgen.tensors import Example


def test_pairs_are_scored_and_compared(files):
    right, wrong = "identifier,prediction\n", ""
    for line in map(json.loads, PAIRS.splitlines()):
        right += f"{line['identifier']},{line['label'].lower()}\n"
        wrong += f"{line['identifier']},True\n"
    ours, theirs, truth = files(ours_csv=right, theirs_csv=wrong, dev_json=PAIRS)
    result = score(ours, "--against", theirs, "--references", truth, "--metric", "pair_accuracy")
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["accuracy"][:4] == ["100.00", "100.00 to 100.00", "50.00", "50.00 to 50.00"]
    assert table["consistency"][0] == "100.00" and table["consistency"][2] == "0.00"


def test_references_of_a_file_equal_those_of_the_data_set(files, tmp_path):
    (truth,) = files(dev_json=PAIRS)
    assert_references_are_those_of(Nlvr2(folder=tmp_path, train_split="dev", test_split="dev"), PairAccuracy, truth)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r_csv", "a-1-1-0,True\nb-1-1-0\n", "r.csv:2: a line must be IDENTIFIER,True or IDENTIFIER,False"),
        ("r_csv", "identifier,\u2028\x85\nb-1-1-0\n", "r.csv:2: a line must be IDENTIFIER,True or IDENTIFIER,False"),
        ("r_csv", "a-1-1-0,True\n" + "b" * 140_000, "r.csv:2: a cell has more than 131,072 characters; is a quotation"),
        ("r_csv", "a-1-1-0,perhaps\n", "r.csv:1: the prediction must be True or False, not 'perhaps'"),
    ],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: PairAccuracy.result_files().read(path, []), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PAIRS.splitlines()[0] + "\n" + PAIRS, "r.json:2: duplicate id 'dev-0-0-0'"),
        (PAIRS.replace("True", "yes", 1), 'r.json:1: label must be "True" or "False", not \'yes\''),
    ],
)
def test_references_that_cannot_be_used(files, text, words):
    (path,) = files(r_json=text)
    assert_refused(lambda: PairAccuracy.result_files().read_references(path), words)


def test_written_results_are_read_again(tmp_path):
    values = {"test1-0-1-0": {"label": "True"}, "test1-0-2-0": {"label": "False"}}
    assert_read_again(PairAccuracy, values, tmp_path / "w.txt")


def test_predictions_of_other_kinds_are_not_written():
    with pytest.raises(DataError, match=r"the prediction must be a label or a string, not \{'box'"):
        PairAccuracy.result_files().write({"7": {"box": [0, 0, 1, 1]}}, [Example("7", {})])
