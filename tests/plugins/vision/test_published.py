"""Published files of tasks: how they are found, shared by configs, and read."""

import gzip
import json
from typing import Literal

import pytest
from kit import published
from mmgen_inputs import Regions, Text
from mmgen_probes import phrases
from mmgen_tasks import Flickr30kEntities
from mmgen_vision.coco import read_captions
from mmgen_vision.configs import FileEach, without_regions
from mmgen_vision.find_files import Finder
from mmgen_vision.flickr30k_files import Annotation, read_annotation
from mmgen_vision.published import PublishedFiles, Split, counted
from pydantic import ValidationError

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.text import json_lines


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


def test_a_file_is_found_by_its_second_name_in_a_subfolder_and_gzipped(tmp_path):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/b.json.gz").write_bytes(gzip.compress(b"[1]\n\n[2]"))
    finder = Finder("A set", tmp_path)
    path = finder.file(["a.json", "b.json"], "nowhere")
    finder.finish("")
    assert path == tmp_path / "annotations/b.json.gz"
    assert list(json_lines(path)) == [(1, [1]), (3, [2])]


def test_one_message_lists_all_missing_files_and_what_to_do(tmp_path):
    (tmp_path / "existing.json").touch()
    (tmp_path / "photos").touch()
    finder = Finder("A set", tmp_path)
    assert finder.file(["existing.json"], "x.org") == tmp_path / "existing.json"
    assert finder.file(["a.json", "b.json"], "x.org/a") == tmp_path / "a.json"
    finder.file(["c.json"], "")
    finder.subfolder("photos", "data.images names it")
    with pytest.raises(DataError) as error:
        finder.finish("put them there")
    assert str(error.value) == (
        f"A set: 2 files are missing:\n  {tmp_path}/a.json  <- x.org/a\n  {tmp_path}/c.json\n  put them there\n"
        f"A set: {tmp_path}/photos: is not a folder; data.images names it"
    )


def write(path, *rows):
    path.write_text(json.dumps({"annotations": rows}))
    return path


def row(image, caption, number=None):
    return {"image_id": image, "caption": caption} | ({} if number is None else {"id": number})


def test_duplicates_and_empty_captions_are_counted(tmp_path):
    first = write(tmp_path / "a.json", row(7, "a dog ", 1), row(7, "a dog", 1), row(8, " ", 2), row(7, "a red dog", 3))
    second = write(tmp_path / "b.json", row(7, "a dog", 1), row(9, "a cat"))
    captions, counts = read_captions([first, second])
    assert captions == {"7": ["a dog", "a red dog"], "9": ["a cat"]}
    assert counts == {"duplicate_captions": 2, "empty_captions": 1}


def test_a_caption_with_two_texts(tmp_path):
    first, second = write(tmp_path / "a.json", row(7, "a dog", 1)), write(tmp_path / "b.json", row(7, "a cat", 1))
    with pytest.raises(DataError) as error:
        read_captions([first, second])
    assert f"caption 1 of image 7 is 'a cat' here and 'a dog' in {first}; keep one of them" in str(error.value)


class Rows(FileEach):
    """One line per example."""

    type: Literal["lines"] = "lines"


def test_recipes_may_add_splits_and_only_those_in_use_are_read():
    config = Rows(folder="f", files={"mini": "mini.jsonl"}, test_split="mini")
    assert config.names() == ("train", "val", "test", "mini") and config.used() == ("train", "val", "mini")


def test_a_split_must_be_a_word():
    with pytest.raises(ValidationError, match="pattern"):
        Rows(folder="f", files={"../x": "mini.jsonl"})


def test_an_objective_over_regions_needs_an_input_with_regions():
    inputs = {"image": Regions(), "caption": Text()}
    assert without_regions("image", inputs) == ""
    assert without_regions("caption", inputs, "classifies") == (
        "classifies the regions of 'caption'; give the step an input 'caption' of type \"regions\""
    )


def read_by_probe(folder):
    """The probe's captions of the image of the split `train`."""
    return phrases.flickr30k(folder, [Example("a", {"image": "1000"})], "image", "caption")


def read_by_task(folder):
    """The task's examples of the split `train`."""
    return Flickr30kEntities(folder=folder).build().split("train")


def refusal(read, folder) -> str:
    with pytest.raises(DataError) as error:
        read(folder)
    return str(error.value)


@pytest.mark.parametrize("read", [read_by_probe, read_by_task])
def test_a_document_type_is_refused(tmp_path, read):
    path = published.flickr30k(tmp_path) / "Annotations/1000.xml"
    path.write_text("<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>\n<annotation>&b;</annotation>")
    assert (
        refusal(read, tmp_path)
        == f"{path}:1: declares a document type, which annotations do not have; remove the declaration"
    )


def test_boxes_are_the_same_pixels_in_the_probe_and_in_the_task(tmp_path):
    folder = published.flickr30k(tmp_path)
    (caption, *_), (example, *_) = read_by_probe(folder), read_by_task(folder)
    assert caption.text == example.inputs["caption"]
    men, hat = caption.phrases
    assert men.boxes == ((0.1, 0.1, 0.3, 0.5), (0.2, 0.2, 0.5, 1.0))  # pixels count from 1: 11 of 100 is 0.1
    around = tuple(edge(box[place] for box in men.boxes) for place, edge in enumerate((min, min, max, max)))
    assert example.labels["phrases"] == ((men.first, men.end, around), (hat.first, hat.end, *hat.boxes))


def test_boxes_outside_of_the_picture_are_left_out():
    annotation = Annotation(10, 10, {"1": [(-5, 0, 5, 20), (12, 0, 14, 5)], "2": [(12, 0, 14, 5)]})
    assert annotation.boxes() == {"1": [(0.0, 0.0, 0.5, 1.0)], "2": []}
    assert annotation.around() == {"1": (0.0, 0.0, 1.0, 1.0), "2": None}


def test_pixels_of_boxes_count_from_0(tmp_path):
    folder = published.flickr30k(tmp_path)
    assert read_annotation(folder / "Annotations/1000.xml").pixels["2"] == [(60, 0, 80, 20)]


def test_a_file_of_very_many_captions_is_refused_where_the_limit_is(tmp_path):
    path = published.flickr30k(tmp_path) / "Sentences/1000.txt"
    path.write_text("[/EN#1/people A man] in a hat .\n" * 1001)
    message = f"{path}:1001: over 1,000 captions; expected the captions of one image, one per line"
    assert refusal(read_by_task, tmp_path) == message
