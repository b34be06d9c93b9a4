"""VQA's files, vocabulary and settings, and its result file."""

import json
import pickle

import pytest
from kit import published
from kit.results import (
    ANNOTATIONS,
    PEOPLE,
    assert_read_again,
    assert_references_are_those_of,
    assert_refused,
    cells,
    score,
)
from mmgen_inputs import Text
from mmgen_tasks import VqaAccuracy, VqaAnswers
from mmgen_tasks.vqa.config import AnswerClasses
from mmgen_tasks.vqa.results import number_or_text
from mmgen_tasks.vqa.vocabulary import read_vocabulary

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction
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


def test_the_vocabulary_has_the_most_common_answers(tmp_path):
    published.vqa(tmp_path)
    questions, annotations = published.vqa_rows("train")
    for row in annotations[1:]:
        row["multiple_choice_answer"] = "The dog"
    (tmp_path / "v2_mscoco_train2014_annotations.json").write_text(json.dumps({"annotations": annotations}))
    assert VqaAnswers(folder=tmp_path, num_answers=1).build().vocabularies() == {"answers": ("dog",)}
    assert VqaAnswers(folder=tmp_path, min_count=2).build().vocabularies() == {"answers": ("dog",)}
    with pytest.raises(DataError, match=r"annotations.json: none of the 2 answers occurs 3 times"):
        VqaAnswers(folder=tmp_path, min_count=3).build().vocabularies()


def test_the_description_identifies_the_vocabulary(tmp_path):
    published.vqa(tmp_path)
    (tmp_path / "a.txt").write_text("no\nyes")
    (tmp_path / "b.txt").write_text("yes\nno")
    descriptions = [
        VqaAnswers(folder=tmp_path, vocabulary=name).build().describe() for name in ("a.txt", "b.txt", "a.txt")
    ]
    first, second, third = (description["answers_fingerprint"] for description in descriptions)
    assert first == third != second and descriptions[0]["answers"] == 2


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
    assert read_vocabulary(tmp_path / name) == ("<unk>", "no", "yes")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", "no\nyes\n no", ":3: duplicate 'no', first as line 1"),
        ("a.json", '{"no": 1, "yes": 2}', ": the answers are not numbered 0 to 1; give a list of answers"),
    ],
)
def test_vocabularies_that_cannot_be_used(tmp_path, name, data, message):
    (tmp_path / name).write_text(data)
    with pytest.raises(DataError) as error:
        read_vocabulary(tmp_path / name)
    assert str(error.value) == f"{tmp_path / name}{message}"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ("train", "val", "test", "test_dev")),
        ({"release": "okvqa"}, ("train", "val")),
        ({"questions": {"minival": ("q.json",)}}, ("train", "val", "test", "test_dev", "minival")),
    ],
)
def test_splits_of_a_release(settings, names):
    assert VqaAnswers(folder="f", **settings).names() == names


def test_answers_are_predicted_at_a_mask():
    problem = "needs a [MASK] after 'question'; give the step that input with append_mask = true"
    for inputs in ({}, {"question": Text(fields=("question",))}):
        assert AnswerClasses().errors(inputs) == problem
    assert AnswerClasses().errors({"question": Text(fields=("question",), append_mask=True)}) == ""


def test_vqa_results_are_scored_with_intervals(files):
    answers = [(1, "Yes"), (2, "Red."), (3, "2")]
    results = [{"question_id": question_id, "answer": answer} for question_id, answer in answers]
    result = score(*files(ours_json=results), "--references", *files(val_json=ANNOTATIONS), "--metric", "vqa_accuracy")
    assert result.exit_code == 0, result.output
    table = cells(result.output)
    assert {name: row[0] for name, row in table.items()} == {
        "metric": "ours.json",
        "accuracy": "66.67",  # answers are not normalised where all people agree
        "yes/no": "0.00",
        "number": "100.00",
        "other": "100.00",
    }
    assert "3 examples\n" in result.output and "references per" not in result.output
    assert "or that are equal for all images" in result.output


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
        ("r_json", json.dumps([{"question_id": 1, "answer": "a"}] * 2), "r.json: results[1]: duplicate id '1'"),
    ],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: VqaAccuracy.result_files().read(path, []), words)


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
