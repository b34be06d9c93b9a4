"""NLVR2's files and settings, and its result file."""

import json

import pytest
from kit import published
from kit.results import PAIRS, assert_read_again, assert_references_are_those_of, assert_refused, cells, score
from mmgen_tasks import Nlvr2, PairAccuracy
from mmgen_tasks.nlvr2.config import ScenePairs, SceneStatements, TrueOrFalse
from pydantic import ValidationError

from mmgen.errors import DataError
from mmgen.examples import All, Example
from mmgen.testing import DatasetSuite


class TestNlvr2(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.nlvr2(tmp_path)

    def config(self):
        return Nlvr2(folder=self.folder, images="images")


def test_examples(tmp_path):
    dataset = Nlvr2(folder=published.nlvr2(tmp_path)).build()
    first, second = dataset.split("dev")
    assert first.id == "dev-850-0-0" and first.targets == ()
    assert first.inputs == {"image": All(("dev-850-0-img0", "dev-850-0-img1")), "statement": "There is a dog."}
    assert (first.labels, second.labels) == ({"truth": True}, {"truth": False})
    assert first.facts == second.facts == {"group": "dev-850--0"}
    assert dataset.vocabularies() == {"truth": ("False", "True")}


def test_subsets_have_separate_files(tmp_path):
    published.nlvr2(tmp_path)
    (tmp_path / "balanced").mkdir()
    for split in ("dev", "test1"):
        (tmp_path / f"balanced/balanced_{split}.json").write_text(json.dumps(published.nlvr2_rows(split)[1]))
    dataset = Nlvr2(folder=tmp_path, pairs="balanced").build()
    assert [len(dataset.split(name)) for name in dataset.splits()] == [2, 1, 1]
    with pytest.raises(DataError) as error:
        Nlvr2(folder=tmp_path, pairs="unbalanced").build()
    assert str(error.value).splitlines() == [
        "NLVR2: 2 files are missing:",
        *(
            f"  {tmp_path}/unbalanced/unbalanced_{split}.json  <- github.com/lil-lab/nlvr, nlvr2/data/unbalanced/"
            f"unbalanced_{split}.json"
            for split in ("dev", "test1")
        ),
        "  put the files there, or name other files in data.files",
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"identifier": "dev-850-0-0", "sentence": "A"}, "duplicate identifier 'dev-850-0-0'"),
        ({"identifier": "dev-1-0-0", "sentence": "A", "label": "yes"}, 'label must be "True" or "False", not \'yes\''),
    ],
)
def test_lines_that_cannot_be_used(tmp_path, row, message):
    published.nlvr2(tmp_path)
    with (tmp_path / "dev.json").open("a") as file:
        file.write("\n" + json.dumps(row))
    with pytest.raises(DataError) as error:
        Nlvr2(folder=tmp_path).build().split("dev")
    assert str(error.value) == f"{tmp_path}/dev.json:4: {message}"


def test_a_hidden_label_is_absent(tmp_path):
    published.nlvr2(tmp_path)
    (tmp_path / "test1.json").write_text(json.dumps({"identifier": "test1-1-0-0", "sentence": "A"}))
    assert Nlvr2(folder=tmp_path).build().split("test1")[0].labels == {}


@pytest.mark.parametrize("missing", ["drop", "keep", "error"])
def test_an_example_needs_both_its_pictures(tmp_path, caplog, missing):
    published.nlvr2(tmp_path)
    (tmp_path / "images/dev-850-1-img1.png").unlink()
    dataset = Nlvr2(folder=tmp_path, images="images", missing=missing).build()
    if missing == "error":
        with pytest.raises(DataError, match=r"NLVR2 dev: images missing from .*images: 1 \(first: dev-850-1-img1\)"):
            dataset.split("dev")
        return
    assert len(dataset.split("dev")) == (1 if missing == "drop" else 2)
    assert dataset.lacking("dev") == {"without_picture": ["dev-850-1-img1"]}
    assert caplog.messages == ["NLVR2 dev: left out 1 example without a picture"] * (missing == "drop")


def test_an_example_is_in_one_split_only(tmp_path):
    published.nlvr2(tmp_path)
    (tmp_path / "dev.json").write_text((tmp_path / "train.json").read_text())
    dataset = Nlvr2(folder=tmp_path).build()
    dataset.split("train")
    with pytest.raises(DataError) as error:
        dataset.split("dev")
    assert str(error.value) == (
        f"{tmp_path}/dev.json: 'train-850-0-0' is also in the split 'train' ({tmp_path}/train.json); an example must "
        "be in one split only"
    )


def test_two_rows_need_rows_of_the_reader():
    assert TrueOrFalse(arrangement="rows").makes_rows and not TrueOrFalse().makes_rows


@pytest.mark.parametrize("pairings", [3, 5, 30])
def test_pairings_are_even_and_at_most_those_of_eight_pictures(pairings):
    with pytest.raises(ValidationError):
        ScenePairs(pairings=pairings)
    assert ScenePairs(pairings=28).pairings == 28


def test_a_form_has_a_known_name():
    with pytest.raises(ValidationError):
        SceneStatements(forms=["nothing"])


def test_pairs_are_scored_and_compared(files):
    right, wrong = "identifier,prediction\n", ""
    for line in map(json.loads, PAIRS.splitlines()):
        right += f"{line['identifier']},{line['label'].lower()}\n"
        wrong += f"{line['identifier']},True\n"
    ours, theirs, truth = files(ours_csv=right, theirs_csv=wrong, dev_json=PAIRS)
    result = score(ours, "--against", theirs, "--references", truth, "--metric", "pair_accuracy")
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert table["accuracy"][:3] == ["100.00", "50.00", "+50.00"]
    assert table["consistency"][:2] == ["100.00", "0.00"]


def test_references_of_a_file_equal_those_of_the_data_set(files, tmp_path):
    (truth,) = files(dev_json=PAIRS)
    assert_references_are_those_of(Nlvr2(folder=tmp_path, train_split="dev", test_split="dev"), PairAccuracy, truth)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r_csv", "identifier,\u2028\x85\nb-1-1-0\n", "r.csv:2: a line must be IDENTIFIER,True or IDENTIFIER,False"),
        ("r_csv", "a-1-1-0,perhaps\n", "r.csv:1: the prediction must be True or False, not 'perhaps'"),
    ],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: PairAccuracy.result_files().read(path, []), words)


def test_written_results_are_read_again(tmp_path):
    values = {"test1-0-1-0": {"label": "True"}, "test1-0-2-0": {"label": "False"}}
    assert_read_again(PairAccuracy, values, tmp_path / "w.txt")


def test_predictions_of_other_kinds_are_not_written():
    with pytest.raises(DataError, match=r"the prediction must be a label or a string, not \{'box'"):
        PairAccuracy.result_files().write({"7": {"box": [0, 0, 1, 1]}}, [Example("7", {})])
