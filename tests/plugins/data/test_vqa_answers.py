"""VQA's files with answers: examples, vocabularies, several files a split."""

import json
import pickle

import pytest
from kit import published
from mmgen_data import Vqa
from mmgen_tasks import VqaAccuracy
from mmgen_vision.lines import read_answers

from mmgen.errors import DataError
from mmgen.examples import Prediction
from mmgen.testing import DatasetSuite


def vqa(**keys) -> Vqa:
    return Vqa(**{"release": "2.0", "targets": "answers", "test_split": "val", **keys})


class TestVqaAnswers(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.vqa(tmp_path)

    def config(self):
        return vqa(folder=self.folder, images="images")


def test_examples(tmp_path):
    dataset = vqa(folder=published.vqa(tmp_path)).build()
    yes, number, dog = dataset.split("val")
    assert (yes.id, yes.inputs) == ("20", {"image": "20", "question": "Is it red?", "answer": "yes"})
    assert yes.facts == {"image": "20", "question_type": "is it", "answer_type": "yes/no"}
    assert yes.targets == ("yes",) * 7 + ("no", "No.", "maybe")
    assert dataset.vocabularies() == {"answers": ("yes", "3", "dog")}  # the most common answers, normalised
    assert yes.labels == {"answers": {"yes": 1.0}} and number.labels == {"answers": {"3": 1.0}}
    assert dog.labels == {"answers": {"dog": 1.0}}
    assert [example.targets for example in dataset.split("train")] == [("yes",), ("3",), ("a dog",)]


def test_soft_targets_count_people_with_equal_answers(tmp_path):
    published.vqa(tmp_path)
    (tmp_path / "answers.txt").write_text("<unk>\nno\nyes\n2\ntwo\nthe dog\n")
    dataset = vqa(folder=tmp_path, vocabulary="answers.txt").build()
    assert dataset.vocabularies() == {"answers": ("<unk>", "no", "yes", "2", "two", "the dog")}
    labels = [example.labels["answers"] for example in dataset.split("val")]
    assert labels == [{"yes": 1.0, "no": 0.6}, {"2": pytest.approx(0.9)}, {"the dog": 1.0}]


def test_blanks_inside_an_answer_stay_as_in_the_official_evaluation(tmp_path):
    published.vqa(tmp_path)
    _, annotations = published.vqa_rows("val")
    for answer in annotations[0]["answers"]:
        answer["answer"] = " light\tblue  sky\n"
    (tmp_path / "v2_mscoco_val2014_annotations.json").write_text(json.dumps({"annotations": annotations}))
    dataset = vqa(folder=tmp_path).build()
    first = dataset.split("val")[0]
    assert first.targets == ("light blue  sky",) * 10
    predicted = [Prediction(first.id, {"label": label}, 1.0) for label in ("light blue sky", "light blue  sky")]
    scores = VqaAccuracy().build().score(predicted, [first] * 2)  # ten people agree, so nothing is normalised
    assert scores.per_example["accuracy"] == [0.0, 100.0]


def test_a_split_of_several_files_and_one_without_answers(tmp_path):
    published.vqa(tmp_path)
    names = {
        kind: [f"v2_{open_}mscoco_{year}_{kind}.json" for year in ("train2014", "val2014")]
        for kind, open_ in (("questions", "OpenEnded_"), ("annotations", ""))
    }
    config = vqa(
        folder=tmp_path,
        files={"both": names["questions"]},
        annotations={"both": names["annotations"]},
        train_split="both",
        validation_split="",
        test_split="test",
    )
    dataset = config.build()
    assert [example.id for example in dataset.split("both")] == ["10", "11", "12", "20", "21", "22"]
    test = dataset.split("test")
    assert len(test) == 3 and test[0].targets == () and test[0].labels == {"answers": {}}


def test_images_that_are_held_out_of_training(tmp_path):
    """As for VisualBERT: train on train and val without a minival."""
    published.vqa(tmp_path)
    (tmp_path / "minival.txt").write_text("20\n")
    year = ["train2014", "val2014"]
    config = vqa(
        folder=tmp_path,
        files={"train": [f"v2_OpenEnded_mscoco_{period}_questions.json" for period in year]},
        annotations={"train": [f"v2_mscoco_{period}_annotations.json" for period in year]},
        held_out="minival.txt",
        test_split="test",
    )
    dataset = config.build()
    assert [example.id for example in dataset.split("train")] == ["10", "11", "12", "21"]
    assert [example.id for example in dataset.split("val")] == ["20", "22"]
    assert len(dataset.split("test")) == 3
    (tmp_path / "minival.txt").write_text("20\nx.jpg\n")
    with pytest.raises(DataError, match=r"minival.txt:2: 'x.jpg' is not an image number; write one number per line"):
        config.build().split("train")


def test_files_of_vqa_1(tmp_path):
    published.vqa(tmp_path / "new")
    for path in (tmp_path / "new").glob("*.json"):
        path.rename(tmp_path / path.name.removeprefix("v2_").replace("OpenEnded", "MultipleChoice"))
    assert len(vqa(folder=tmp_path, release="1.0").build().split("val")) == 3


def test_answers_that_cannot_be_counted(tmp_path):
    config = vqa(folder=published.vqa(tmp_path), annotations={"train": []})
    with pytest.raises(DataError, match="the split 'train' has no annotations, so its answers cannot be counted"):
        config.build().vocabularies()


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (
            "annotations",
            {"answers": [{"answer": "no"}] * 11},
            "annotations[1]: answers must have at most 10 items after validation, not 11",
        ),
    ],
)
def test_files_that_cannot_be_used(tmp_path, kind, change, message):
    published.vqa(tmp_path)
    name = f"v2_{'OpenEnded_' * (kind == 'questions')}mscoco_train2014_{kind}.json"
    rows = published.vqa_rows("train")[kind == "annotations"]
    rows[1].update(change)
    (tmp_path / name).write_text(json.dumps({kind: rows}))
    with pytest.raises(DataError) as error:
        vqa(folder=tmp_path).build().split("train")
    assert str(error.value) == f"{tmp_path / name}: {message}"


def test_the_vocabulary_has_the_most_common_answers(tmp_path):
    published.vqa(tmp_path)
    questions, annotations = published.vqa_rows("train")
    for row in annotations[1:]:
        row["multiple_choice_answer"] = "The dog"
    (tmp_path / "v2_mscoco_train2014_annotations.json").write_text(json.dumps({"annotations": annotations}))
    assert vqa(folder=tmp_path, num_answers=1).build().vocabularies() == {"answers": ("dog",)}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b"<unk>\r\nno\nyes\n\n"),
        ("a.json", b'["<unk>", "no", "yes"]'),
        ("a.json", b'{"yes": 2, "<unk>": 0, "no": 1}'),
        ("a.pkl", pickle.dumps(["<unk>", "no", "yes"], 2)),
    ],
)
def test_vocabularies_of_every_form(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert read_answers(tmp_path / name) == ("<unk>", "no", "yes")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", "no\nyes\n no", ": duplicate 'no'"),
        ("a.json", '{"no": 1, "yes": 2}', ": the answers are not numbered 0 to 1; give a list of answers"),
    ],
)
def test_vocabularies_that_cannot_be_used(tmp_path, name, data, message):
    (tmp_path / name).write_text(data)
    with pytest.raises(DataError) as error:
        read_answers(tmp_path / name)
    assert str(error.value) == f"{tmp_path / name}{message}"
