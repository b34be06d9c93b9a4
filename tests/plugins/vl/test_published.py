"""The base class of data sets in published files, used as by a plugin."""

import json
import os
from typing import Literal

import pytest
from kit import published
from mmgen_questions import Csv, Jsonl, Vqa
from mmgen_tasks.captions.config import CocoCaptions
from mmgen_tasks.flickr30k.config import Flickr30kEntities
from mmgen_tasks.nlvr2.config import Nlvr2
from mmgen_tasks.refcoco.config import Refcoco
from mmgen_tasks.vcr.config import Vcr
from mmgen_tasks.vqa.config import VqaAnswers
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


def test_a_fingerprint_has_the_bytes_of_files_and_the_names_of_images(folder):
    def fingerprint():
        return Lines(folder=folder, images="images").build().fingerprint()

    first, file = fingerprint(), folder / "train.jsonl"
    assert first == fingerprint() is not None
    before = file.stat()
    file.write_text(file.read_text().replace("train-1", "train-9"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size and fingerprint() != first
    file.write_text(file.read_text().replace("train-9", "train-1"))
    assert fingerprint() == first
    (folder / "images/train-1.jpg").rename(folder / "images/train-2.jpg")
    assert fingerprint() != first


def test_a_file_that_cannot_be_read_has_no_fingerprint(folder, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("mmgen_vl.published.file_digest", refuse)
    assert Lines(folder=folder).build().fingerprint() is None


CAPTIONS = {
    "images": [{"id": number, "file_name": f"COCO_train2014_{number:012d}.jpg"} for number in (1, 2)],
    "annotations": [{"id": number, "image_id": number, "caption": f"a cat {number}"} for number in (1, 2)],
}
TABLES = {
    "train.csv": "image,question\n1,what ?\n",
    "labelled.csv": "image,question,answers\n1,what ?,cat\n",
    "train.jsonl": '{"id": "1", "image": "1", "questions": ["what ?"]}\n',
    "captions.json": json.dumps(CAPTIONS),
    "exclude.txt": "2\n",
}
ALONE = {"train_split": "train", "validation_split": "train", "test_split": "train"}
FORMATS = {
    "csv": (Csv, ALONE),
    "csv with captions": (Csv, {**ALONE, "caption_files": ["captions.json"]}),
    "csv with labels": (Csv, {**ALONE, "files": {"train": "labelled.csv"}, "columns": {"answers": "answers"}}),
    "jsonl": (Jsonl, ALONE),
    "captions": (CocoCaptions, {"files": {"train": ["captions.json"]}, **ALONE, "exclude_images": "exclude.txt"}),
    "refcoco": (Refcoco, {"test_split": "testA"}),
    "vqa": (VqaAnswers, {}),
    "questions of vqa": (Vqa, {"release": "2.0", "caption_files": ["captions.json"], "missing": "keep"}),
    "nlvr2": (Nlvr2, {}),
    "vcr": (Vcr, {}),
    "flickr30k": (Flickr30kEntities, {}),
}


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_file_that_changes_an_example_changes_the_fingerprint(tmp_path, format_name):
    """Of all published formats: each file in turn is emptied."""
    cls, settings = FORMATS[format_name]
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    if write := getattr(published, "vqa" if "vqa" in format_name else format_name, None):
        write(tmp_path)

    def load():
        data = cls(folder=tmp_path, **settings).build()
        try:
            return data.fingerprint(), str([[vars(example) for example in data.split(name)] for name in data.splits()])
        except DataError as error:
            return data.fingerprint(), str(error)

    fingerprint, examples = load()
    assert "'id': " in examples and fingerprint
    changed = 0
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".jpg"]:
        content = path.read_bytes()
        path.write_bytes(b"")
        new_fingerprint, new_examples = load()
        path.write_bytes(content)
        if new_examples != examples:
            changed += 1
            assert new_fingerprint != fingerprint, path
    assert changed and load() == (fingerprint, examples)
