"""VCR's files and settings, and its result files."""

import json

import pytest
from kit import published
from mmgen_tasks import Vcr, VcrTexts
from mmgen_tasks.vcr import CLASSES

from mmgen.errors import DataError
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


def test_classes_of_objects(tmp_path):
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": ["Is", [3], "?"]}, "mentions object 3, but the still has 3 objects"),
        ({"answer_label": 4}, "answer_label must be less than 4"),
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
        ({"boxes": [[0, 0, 1, 1]]}, "needs a name and a box inside of the picture for every object"),
        ({"boxes": [[5, 5, 5, 9, 1]] * 3}, "needs a name and a box inside of the picture for every object"),
    ],
)
def test_metadata_that_cannot_be_used(tmp_path, change, message):
    published.vcr(tmp_path)
    path = tmp_path / "vcr1images/lsmdc_film/train_00.23@0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError) as error:
        next(iter(Vcr(folder=tmp_path, images="vcr1images").build().pictures()))
    assert str(error.value) == f"{path}: {message}"
