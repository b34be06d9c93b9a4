"""Questions in tables: columns, cells, and tables that cannot be used."""

import logging
from pathlib import Path

import pytest
from kit.questions import load_error, vqg
from mmgen_data import Table

from mmgen.errors import DataError
from mmgen.testing import DatasetSuite


def table(folder: Path, text: str, name: str = "q.csv", **options) -> Table:
    (folder / name).write_text(text)
    return Table(folder=folder, files={"train": name}, validation_split="", test_split="train", **options)


def test_a_table_with_one_question_per_row(tmp_path, caplog):
    rows = 'image,split,question\nphotos/b.jpg,x,What?\nc.jpg,x,Who?\nb.jpg,y,"Why, now?"\nb.jpg,y,What?\n'
    with caplog.at_level(logging.INFO, "mmgen"):
        examples = table(tmp_path, rows).build().split("train")
    assert [(example.id, example.inputs, example.targets) for example in examples] == [
        ("train-b", {"image": "b"}, ("What?", "Why, now?")),
        ("train-c", {"image": "c"}, ("Who?",)),
    ]
    assert caplog.messages == ["table train: left out 1 repeated question"]


def test_a_table_whose_columns_are_named(tmp_path):
    rows = "key\tfile\tq\tdescription\tsound\n7\ta/b.jpg\tWhat?|Who?\ta cat|a pet\tmeow.wav\n8\t\tWhy?\ta dog\t\n"
    columns = {"id": "key", "image": "file", "questions": "q", "caption": "description", "audio": "sound"}
    first, second = table(tmp_path, rows, "q.tsv", columns=columns, separator="|").build().split("train")
    assert (first.id, first.targets) == ("train-7", ("What?", "Who?"))
    assert first.inputs == {"image": "b", "audio": ("meow.wav",), "caption": ("a cat", "a pet")}
    assert (second.id, second.inputs, second.targets) == ("train-8", {"caption": ("a dog",)}, ("Why?",))


@pytest.mark.parametrize(
    "text, error, columns",
    [
        (
            "image,question_text\n1,What?\n",
            ":1: no column 'questions_text'; did you mean 'question_text'?; the columns are: image, question_text",
            {"questions": "questions_text"},
        ),
        (
            "id,image,questions\n1,a,b\n1,c,d\n",
            ":3: an earlier row with the same id has the image a; use one per id",
            {},
        ),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path, text, error, columns):
    assert load_error(table(tmp_path, text, columns=columns)).startswith(f"{tmp_path}/q.csv{error}")


def test_csv_with_windows_habits(tmp_path, caplog):
    """A byte-order mark, CRLF, columns in another order, a repeated row, an empty question, a line break."""
    rows = 'questions,image_id\r\n"What, now?------Who\r\nis it?",7\r\nWhy?,8\r\nWhy?,8\r\n'
    with caplog.at_level(logging.INFO, "mmgen"):
        dataset = vqg(tmp_path, b"\xef\xbb\xbf" + rows.encode()).build()
        examples = dataset.split("train")
    assert [(example.id, example.targets) for example in examples] == [
        ("train-7", ("What, now?", "Who is it?")),
        ("train-8", ("Why?",)),
    ]
    assert caplog.messages == ["VQG_COCO train: left out 1 empty question, 1 repeated question"]
    assert dataset.describe()["counts"]["train"] == {"empty questions": 1, "repeated questions": 1}


class TestCsv(DatasetSuite):
    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        for image, split in enumerate(("train", "val", "test")):
            (tmp_path / f"{split}.csv").write_text(f"image,caption,questions\n{image}.jpg,a,What?---Who?\n")
        self.folder = tmp_path

    def config(self):
        return Table(folder=self.folder)


def test_a_column_of_prompts(tmp_path):
    """Rows of an image are one example in training; elsewhere an example has one prompt, as scores need it."""
    rows = "image,questions,level\n1,what is it?---where is it?,remember\n1,why is it there?,analyse\n2,who?,\n"
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.csv").write_text(rows)
    config = Table(folder=tmp_path, columns={"prompt": "level"})
    assert config.labels == ("prompt",)
    train, test = config.build().split("train"), config.build().split("test")
    assert [(example.id, example.targets, example.labels["prompt"]) for example in train] == [
        ("train-1", ("what is it?", "where is it?", "why is it there?"), ("remember", "remember", "analyse")),
        ("train-2", ("who?",), ("",)),
    ]
    assert [(example.id, example.targets, example.labels["prompt"]) for example in test] == [
        ("test-1:1", ("what is it?", "where is it?"), ("remember", "remember")),
        ("test-1:2", ("why is it there?",), ("analyse",)),
        ("test-2:1", ("who?",), ("",)),
    ]
    assert test[1].facts == {"prompt_kind": "", "prompt_value": "analyse"}


def test_lines_of_json_with_prompts(tmp_path):
    lines = '{"image": "1", "questions": ["what?", "who?"], "level": ["easy", "hard"]}\n'
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.jsonl").write_text(lines)
    (example,) = Table(folder=tmp_path, columns={"prompt": "level"}).build().split("train")
    assert (example.targets, example.labels["prompt"]) == (("what?", "who?"), ("easy", "hard"))
    assert "level" not in example.inputs


def test_wrong_prompts(tmp_path):
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.csv").write_text("image,questions,level\n1,a?---b?---c?,x---y\n")
    with pytest.raises(DataError) as error:
        Table(folder=tmp_path, columns={"prompt": "level"}).build().split("train")
    assert str(error.value).endswith("train.csv:2: 2 prompts for 3 questions; give one, or one per question")
    with pytest.raises(ValueError, match="only questions to generate have a prompt; remove it, or the label 'answers'"):
        Table(folder=tmp_path, columns={"prompt": "level", "answers": "answer"})
