"""VCR's files and settings, and its result files."""

import json
import random
import re

import pytest
from kit import published
from kit.results import ITEMS, VCR, assert_read_again, assert_references_are_those_of, assert_refused, cells, score
from mmgen_inputs import Text
from mmgen_tasks import ChoiceAccuracy, Vcr, VcrTexts
from mmgen_tasks.vcr.config import MultipleChoice
from mmgen_tasks.vcr.files import CLASSES, name_objects
from mmgen_tasks.vcr.items import NAMES

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.testing import DatasetSuite


class TestVcr(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.vcr(tmp_path)

    def config(self):
        return Vcr(folder=self.folder, images="vcr1images", subtask="every", test_split="test")


class TestVcrTexts(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.vcr(tmp_path)

    def config(self):
        return VcrTexts(folder=self.folder, images="vcr1images")


def test_texts_one_by_one(tmp_path):
    """Eight examples per item, each with the mentions of its choice, and whether the choice is right."""
    folder = published.vcr(tmp_path)
    texts, together = (config(folder=folder).build().split("val") for config in (VcrTexts, Vcr))
    assert [example.id for example in texts] == [
        f"val-0-{subtask}-{n}" for subtask in ("answer", "rationale") for n in range(4)
    ]
    for place, example in enumerate(texts):
        source = together[place // 4]
        assert example.inputs["question"] == source.inputs["question"] and example.facts == source.facts
        assert example.inputs["choice"] == source.labels["choices"][place % 4]
        mentions = example.inputs["choice_mentions"].values if "choice_mentions" in example.inputs else ()
        assert mentions == source.labels["choice_mentions"][place % 4]
    assert [example.labels["truth"] for example in texts] == [n in (0, 5) for n in range(8)]
    unknown = VcrTexts(folder=folder, test_split="test").build().split("test")
    assert [example.labels for example in unknown] == [{}] * 4


def named_objects(text: str, mentions) -> list[tuple[str, tuple[int, ...]]]:
    return [(text[first:end], objects) for first, end, objects in mentions]


def test_an_answer_and_its_rationale(tmp_path):
    answer, rationale = Vcr(folder=published.vcr(tmp_path)).build().split("val")
    assert answer.id == "val-0-answer" and answer.inputs["image"] == "val_00.23@0"
    question = answer.inputs["question"]
    assert question == "Does Riley see Casey and car?"
    assert named_objects(question, answer.inputs["question_mentions"].values) == [
        ("Riley", (2,)),
        ("Casey", (0,)),
        ("car", (1,)),
    ]
    assert answer.labels["choices"] == ("Yes, Riley does.", "No.", "Casey's car.", "Maybe.")
    mentioned = zip(answer.labels["choices"], answer.labels["choice_mentions"], strict=True)
    assert [named_objects(*choice) for choice in mentioned] == [[("Riley", (2,))], [], [("Casey", (0,))], []]
    assert answer.labels["choice"] == 0
    assert answer.facts == {"asks": "answer", "item": "val-0", "group": "val-0", "image": "val_00.23@0"}
    assert rationale.id == "val-0-rationale" and rationale.facts["asks"] == "rationale"
    question = rationale.inputs["question"]
    assert question == "Does Riley see Casey and car? Yes, Riley does."
    assert named_objects(question, rationale.inputs["question_mentions"].values)[-1] == ("Riley", (2,))
    assert rationale.labels["choices"][0] == "Riley looks at car." and rationale.labels["choice"] == 1


@pytest.mark.parametrize(
    ("subtask", "split", "ids"),
    [
        ("answer", "val", ["answer"]),
        ("rationale", "val", ["rationale"]),
        ("both", "val", ["answer", "rationale"]),
        ("every", "val", ["answer", "rationale", "rationale-0", "rationale-1", "rationale-2", "rationale-3"]),
        ("both", "test", ["answer"]),
        ("every", "test", ["answer", "rationale-0", "rationale-1", "rationale-2", "rationale-3"]),
    ],
)
def test_subtasks(tmp_path, subtask, split, ids):
    examples = Vcr(folder=published.vcr(tmp_path), subtask=subtask, test_split=split).build().split(split)
    assert [example.id for example in examples] == [f"{split}-0-{suffix}" for suffix in ids]
    known = ["choice" in example.labels for example in examples]
    assert known == [split != "test" and not suffix[-1].isdigit() for suffix in ids]
    if subtask == "every":
        assert examples[-1].inputs["question"].endswith("car? Maybe.")


def test_rationales_without_a_right_answer(tmp_path):
    with pytest.raises(DataError, match="no examples remain for the split 'test': 1 question without answers"):
        Vcr(folder=published.vcr(tmp_path), subtask="rationale", test_split="test").build().split("test")


def test_classes_of_objects(tmp_path, monkeypatch):
    """COCO's classes first, in COCO's order, whatever the files have; then the other classes of the files."""
    row = published.vcr_rows("train")[0]
    published.vcr(tmp_path)
    (tmp_path / "train.jsonl").write_text(json.dumps(row | {"objects": ["sphinx", "car", "person", "griffin"]}))
    data = Vcr(folder=tmp_path).build()
    assert [example.labels["objects"] for example in data.split("train")] == [
        ("sphinx", "car", "person", "griffin")
    ] * 2
    assert [example.labels["objects"] for example in data.split("val")] == [("person", "car", "person")] * 2
    known = data.vocabularies()["objects"]
    assert len(CLASSES) == len(set(CLASSES)) == 80 and known == (*CLASSES, "griffin", "sphinx")
    assert (known[0], known[2], known[79]) == ("person", "car", "toothbrush")
    monkeypatch.setattr("mmgen_tasks.vcr.files.MOST_CLASSES", 1)
    with pytest.raises(DataError) as caught:
        data.vocabularies()
    assert str(caught.value) == (
        f"{tmp_path}/train.jsonl: 2 classes of objects are not COCO's; at most 1 are supported"
    )


def test_people_have_thirteen_names():
    assert len(set(NAMES)) == 13
    assert name_objects(["person"] * 14 + ["dog"])[-3:] == ["Quinn", "Casey", "dog"]


def test_a_question_without_a_mention_has_no_such_input(tmp_path):
    row = published.vcr_rows("train")[0] | {"question": ["Why", "?"]}
    published.vcr(tmp_path)
    (tmp_path / "train.jsonl").write_text(json.dumps(row))
    example = Vcr(folder=tmp_path).build().split("train")[0]
    assert example.inputs == {"image": "train_00.23@0", "question": "Why?"}


def test_boxes_of_objects_in_their_order_and_the_whole_picture(tmp_path):
    dataset = Vcr(folder=published.vcr(tmp_path), images="vcr1images").build()
    picture = next(iter(dataset.pictures()))
    assert picture.boxes == [(0.1, 0.1, 0.5, 0.9), (0.5, 0.5, 1.0, 1.0), (0.0, 0.0, 0.2, 0.5), (0.0, 0.0, 1.0, 1.0)]
    assert picture.region_names == ["person", "car", "person", "the whole picture"]


def test_files_that_are_missing(tmp_path):
    with pytest.raises(DataError) as error:
        Vcr(folder=tmp_path, images="vcr1images").build()
    assert str(error.value).splitlines() == [
        "VCR: 2 files are missing:",
        f"  {tmp_path}/train.jsonl  <- visualcommonsense.com/download, vcr1annots.zip",
        f"  {tmp_path}/val.jsonl  <- visualcommonsense.com/download, vcr1annots.zip",
        "  put the files there, or name other files in data.files",
        f"VCR: {tmp_path}/vcr1images: no such folder; data.images names the folder of raw images",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": ["Is", [3], "?"]}, "question[1] mentions an object that is not among the 3 objects"),
        ({"answer_label": 4}, "answer_label must be a number from 0 to 3"),
    ],
)
def test_lines_that_cannot_be_used(tmp_path, change, message):
    published.vcr(tmp_path)
    with (tmp_path / "train.jsonl").open("a") as file:
        file.write(json.dumps(published.vcr_rows("train")[0] | {"annot_id": "train-1"} | change))
    with pytest.raises(DataError) as error:
        Vcr(folder=tmp_path).build().split("train")
    assert str(error.value) == f"{tmp_path}/train.jsonl:2: {message}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"boxes": [[0, 0, 1, 1]]}, "boxes and names must be lists of the same length"),
        ({"boxes": [[5, 5, 5, 9, 1]] * 3}, "boxes[0] is outside of the picture, or empty"),
    ],
)
def test_metadata_that_cannot_be_used(tmp_path, change, message):
    published.vcr(tmp_path)
    path = tmp_path / "vcr1images/lsmdc_film/train_00.23@0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError) as error:
        next(iter(Vcr(folder=tmp_path, images="vcr1images").build().pictures()))
    assert str(error.value) == f"{path}: {message}"


def test_an_item_is_in_one_split_only(tmp_path):
    folder = published.vcr(tmp_path)
    (folder / "train.jsonl").write_text((folder / "val.jsonl").read_text())
    dataset = Vcr(folder=folder).build()
    dataset.split("train")
    with pytest.raises(DataError) as error:
        dataset.split("val")
    assert str(error.value) == (
        f"{folder}/val.jsonl: 'val-0-answer' is also in the split 'train' ({folder}/train.jsonl); an example must be "
        "in one split only"
    )


def test_an_input_reads_the_choice():
    choice = MultipleChoice(choice="answer")
    assert choice.provides() == ("answer", "answer_mentions")
    assert choice.errors({"reply": Text(fields=("answer",))}) == ""
    assert choice.errors({"question": Text(fields=("question",))}) == (
        'needs an input that reads \'answer\'; add one of type "text" with fields = ["answer"]'
    )


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
        ("r_csv", VCR.replace("0.7", "nan", 1), "r.csv:2: answer_0 must be a number, not 'nan'"),
        ("r_csv", VCR + "val-9,1\n", "r.csv:5: 2 cells, but the header has 21 columns"),
    ],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: ChoiceAccuracy.result_files().read(path, []), words)


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
