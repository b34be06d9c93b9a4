"""VQA's questions with answers: soft targets, vocabularies by frequency and from files, splits of several files."""

import json

import pytest
from kit import published
from mmgen_tasks import VqaAccuracy, VqaAnswers

from mmgen.errors import DataError
from mmgen.tensors import Prediction
from mmgen.testing import DatasetSuite


class TestVqaAnswers(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.vqa(tmp_path)

    def config(self):
        return VqaAnswers(folder=self.folder, images="images")


def test_examples(tmp_path):
    dataset = VqaAnswers(folder=published.vqa(tmp_path)).build()
    yes, number, dog = dataset.split("val")
    assert (yes.id, yes.inputs) == ("20", {"image": "20", "question": "Is it red?", "answer": "yes"})
    assert yes.facts == {"image": "20", "question_type": "is it", "answer_type": "yes/no"}
    assert yes.targets == ("yes",) * 7 + ("no", "No.", "maybe")
    assert dataset.vocabularies() == {"answers": ("yes", "3", "dog")}  # the most common answers, normalised
    assert yes.labels == {"answers": {"yes": 1.0}} and number.labels == {"answers": {"3": 1.0}}
    assert dog.labels == {"answers": {"dog": 1.0}}
    assert [example.targets for example in dataset.split("train")] == [("yes",), ("3",), ("a dog",)]
    all_targets = VqaAnswers(folder=tmp_path, train_targets="all").build().split("train")
    assert all_targets[1].targets == ("2", "2", "two") + ("3",) * 7


def test_soft_targets_count_people_with_equal_answers(tmp_path):
    published.vqa(tmp_path)
    (tmp_path / "answers.txt").write_text("<unk>\nno\nyes\n2\ntwo\nthe dog\n")
    dataset = VqaAnswers(folder=tmp_path, vocabulary="answers.txt").build()
    assert dataset.vocabularies() == {"answers": ("<unk>", "no", "yes", "2", "two", "the dog")}
    labels = [example.labels["answers"] for example in dataset.split("val")]
    assert labels == [{"yes": 1.0, "no": 0.6}, {"2": pytest.approx(0.9)}, {"the dog": 1.0}]


def test_blanks_inside_an_answer_stay_as_in_the_official_evaluation(tmp_path):
    published.vqa(tmp_path)
    _, annotations = published.vqa_rows("val")
    for answer in annotations[0]["answers"]:
        answer["answer"] = " light\tblue  sky\n"
    (tmp_path / "v2_mscoco_val2014_annotations.json").write_text(json.dumps({"annotations": annotations}))
    dataset = VqaAnswers(folder=tmp_path).build()
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
    config = VqaAnswers(
        folder=tmp_path,
        questions={"both": names["questions"]},
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
    config = VqaAnswers(
        folder=tmp_path,
        questions={"train": [f"v2_OpenEnded_mscoco_{period}_questions.json" for period in year]},
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
    assert len(VqaAnswers(folder=tmp_path, release="1.0").build().split("val")) == 3


def test_okvqa(tmp_path, real_data):
    """OK-VQA's answers are not available, so half of the real questions get made-up answers."""
    names = [f"OpenEnded_mscoco_{year}_questions.json" for year in ("train2014", "val2014")]
    for name in names:
        rows = json.loads((real_data / "okvqa" / name).read_text())["questions"]
        rows_of_answers = [
            {"question_id": row["question_id"], "answers": [{"answer": "dog"}] * 10} for row in rows[::2]
        ]
        annotations_name = name.removeprefix("OpenEnded_").replace("questions", "annotations")
        (tmp_path / annotations_name).write_text(json.dumps({"annotations": rows_of_answers}))
        (tmp_path / name).symlink_to(real_data / "okvqa" / name)
    description = VqaAnswers(folder=tmp_path, release="okvqa").build().describe()
    assert description["examples"] == {"train": 4505, "val": 2523}
    assert description["counts"] == {"train": {"without_answers": 4504}, "val": {"without_answers": 2523}}


def test_files_that_are_missing(tmp_path):
    with pytest.raises(DataError) as error:
        VqaAnswers(folder=tmp_path, test_split="test", validation_split="", vocabulary="answers_vqa.txt").build()
    assert str(error.value).splitlines() == [
        "VQA 2.0: 4 files are missing:",
        f"  {tmp_path}/v2_OpenEnded_mscoco_train2014_questions.json  <- visualqa.org/download.html",
        f"  {tmp_path}/v2_mscoco_train2014_annotations.json  <- visualqa.org/download.html",
        f"  {tmp_path}/answers_vqa.txt",
        f"  {tmp_path}/v2_OpenEnded_mscoco_test2015_questions.json  <- visualqa.org/download.html",
        "  put the files there, or name other files in data.questions, data.annotations, data.vocabulary and "
        "data.held_out",
    ]


def test_a_split_whose_answers_are_for_other_questions(tmp_path):
    published.vqa(tmp_path)
    name = "v2_mscoco_val2014_annotations.json"
    config = VqaAnswers(folder=tmp_path, annotations={"train": [name]}, vocabulary="answers.txt")
    (tmp_path / "answers.txt").write_text("yes")
    with pytest.raises(DataError) as error:
        config.build().split("train")
    questions = tmp_path / "v2_OpenEnded_mscoco_train2014_questions.json"
    assert str(error.value) == f"{questions}: no examples remain for the split 'train': 3 questions without answers"


def test_answers_that_cannot_be_counted(tmp_path):
    config = VqaAnswers(folder=published.vqa(tmp_path), annotations={"train": []})
    with pytest.raises(DataError, match="the split 'train' has no annotations, so its answers cannot be counted"):
        config.build().vocabularies()


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("questions", {"question_id": 10}, "questions[1]: duplicate question_id 10"),
        ("questions", {"question": None}, "questions[1]: question must be a text, not null"),
        (
            "questions",
            {"image_id": 1.5},
            "questions[1]: image_id must be a number or a text, not a number with a point",
        ),
        (
            "questions",
            {"image_id": 99},
            "questions[1]: question_id 11 has image_id 99 here, but 11 in "
            "v2_mscoco_train2014_annotations.json; use files of the same release",
        ),
        (
            "annotations",
            {"answers": [{"answer": "no"}] * 11},
            "annotations[1]: a question has 11 answers; VQA has the answers of 10 people or fewer",
        ),
        ("annotations", {"question_id": 10}, "annotations[1]: duplicate question_id 10"),
        ("annotations", {"answers": []}, "annotations[1]: answers must be a list with the answers of people, not []"),
        ("annotations", {"answers": [{}]}, "annotations[1]: answers[0]: has no 'answer'; its keys are: none"),
        ("annotations", {"answers": ["no"]}, "annotations[1]: answers[0]: must be a table with answer, not a text"),
        ("annotations", {"answer_type": 3}, "annotations[1]: answer_type must be a text, not a number"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, kind, change, message):
    published.vqa(tmp_path)
    name = f"v2_{'OpenEnded_' * (kind == 'questions')}mscoco_train2014_{kind}.json"
    rows = published.vqa_rows("train")[kind == "annotations"]
    rows[1].update(change)
    (tmp_path / name).write_text(json.dumps({kind: rows}))
    with pytest.raises(DataError) as error:
        VqaAnswers(folder=tmp_path).build().split("train")
    assert str(error.value) == f"{tmp_path / name}: {message}"
