"""The base class of data sets in published files, used as by a plugin."""

import json
from typing import Literal

import pytest
from kit import published
from mmgen_vl.configs import FileEach
from mmgen_vl.published import PublishedFiles, Split, counted

from mmgen.errors import DataError
from mmgen.tensors import Example


class Lines(FileEach):
    """One line per example."""

    type: Literal["lines"] = "lines"

    def build(self):
        return LineFiles(self)


class LineFiles(PublishedFiles):
    name, licence, source = "Lines", "CC0", "example.org/lines.zip"
    advice = "put them there, or name others in data.files"
    read: tuple[str, ...] = ()

    def find(self, finder, split):
        return finder.file([self.config.files.get(split, f"{split}.jsonl")], self.source)

    def load(self, name):
        self.read += (name,)
        rows = [json.loads(line) for line in self.files[name].read_text().splitlines()]
        examples = [Example(row["id"], {"image": row["id"]}, ("x",)) for row in rows if "id" in row]
        return Split(examples, {"without_id": len(rows) - len(examples)}, {})


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.jsonl").write_text(f'{{"id": "{split}-1"}}\n{{"id": "{split}-2"}}\n{{}}\n')
    published.pictures(tmp_path / "images", "train-1.jpg", "test-2.jpg")
    return tmp_path


def test_a_split_is_read_once_on_first_use(folder):
    data = Lines(folder=folder).build()
    assert data.splits() == ("train", "val", "test") and data.read == ()
    assert [example.id for example in data.split("val")] == ["val-1", "val-2"] and data.lacking("val") == {}
    assert data.describe() == {
        "name": "Lines",
        "examples": {"train": 2, "val": 2, "test": 2},
        "counts": {"train": {"without_id": 1}, "val": {"without_id": 1}, "test": {"without_id": 1}},
        "licence": "CC0",
        "source": "example.org/lines.zip",
    }
    assert sorted(data.read) == ["test", "train", "val"]
    with pytest.raises(DataError) as error:
        data.split("dev")
    assert str(error.value) == "Lines: split 'dev' is not in use; the splits are: train, val, test"


def test_pictures_come_from_the_folder(folder):
    data = Lines(folder=folder, images="images").build()
    assert [(picture.key, picture.boxes) for picture in data.pictures()] == [("train-1", None), ("test-2", None)]
    with pytest.raises(DataError) as error:
        next(Lines(folder=folder).build().pictures())
    assert str(error.value) == ("Lines has no raw images; set data.images, or give the embedder a file of features")


def test_only_used_splits_need_files_and_all_missing_files_are_listed(folder):
    (folder / "val.jsonl").unlink()
    assert Lines(folder=folder, validation_split="test").build().splits() == ("train", "test")
    with pytest.raises(DataError) as error:
        Lines(folder=folder, images="photos").build()
    assert str(error.value).splitlines() == [
        "Lines: a file is missing:",
        f"  {folder}/val.jsonl  <- example.org/lines.zip",
        "  put them there, or name others in data.files",
        f"Lines: {folder}/photos: no such folder; data.images names the folder of raw images",
    ]


def test_a_split_that_does_not_exist_is_an_error_of_the_config(folder):
    with pytest.raises(ValueError, match="test_split: lines has no split 'dev'; choose from: train, val, test, more"):
        Lines(folder=folder, files={"more": "more.jsonl"}, test_split="dev")


def test_counts_in_words():
    words = {"a": "{what}{s} without a box", "b": "empty line{s}", "c": "line{s}"}
    assert counted({"a": 1200, "b": 1, "c": 0}, words, "phrase") == "1,200 phrases without a box, 1 empty line"
