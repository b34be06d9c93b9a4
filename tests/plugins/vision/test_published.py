"""Published files of tasks: how they are found, read, and left out; files that a task and a probe share."""

import gzip
import json
from collections.abc import Iterator
from typing import Literal

import pytest
from kit import published
from kit.refusals import refusal
from mmgen_probes import phrases
from mmgen_tasks import Flickr30kEntities
from mmgen_vision.configs import About, Published
from mmgen_vision.flickr30k_files import Annotation

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.rows import Filled, Key, Row


class Line(Row):
    id: Filled
    image: Key | None = None


class Lines(Published):
    """One line per example."""

    type: Literal["lines"] = "lines"
    about = About("Lines", "CC0", "example.org/lines.zip")

    def find(self, finder, split):
        return {"lines": finder.files(split, f"{split}.jsonl")}

    def read(self, data, split) -> Iterator[Example | str]:
        for _, row in data.rows(split, "lines", Line, unique="id"):
            yield Example(row.id, {"image": row.image}, ("x",)) if row.image else "line{s} without an image"


@pytest.fixture
def folder(tmp_path):
    for split in ("train", "val", "test"):
        lines = [{"id": f"{split}-{n}", "image": f"{split}-{n}.jpg"} for n in (1, 2)] + [{"id": f"{split}-3"}]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    published.pictures(tmp_path / "images", "train-1.jpg", "val-2.jpg", "test-1.jpg", "test-2.jpg")
    return tmp_path


def test_a_split_is_read_once_and_what_is_left_out_is_counted(folder, caplog):
    data = Lines(folder=folder).build()
    assert [example.id for example in data.split("val")] == ["val-1", "val-2"]
    assert data.split("val") is data.split("val") and caplog.messages == ["Lines val: left out 1 line without an image"]
    assert data.describe() == {
        "name": "Lines",
        "examples": {"train": 2, "val": 2, "test": 2},
        "counts": dict.fromkeys(("train", "val", "test"), {"lines without an image": 1}),
        "licence": "CC0",
        "source": "example.org/lines.zip",
    }
    with pytest.raises(DataError, match="Lines: split 'dev' is not in use; the splits are: train, val, test"):
        data.split("dev")


def test_examples_without_a_picture(folder):
    data = Lines(folder=folder, images="images").build()
    assert [picture.key for picture in data.pictures()] == ["train-1", "val-2", "test-1", "test-2"]
    assert len(data.split("train")) == 1
    with pytest.raises(DataError, match="Lines has no raw images; set data.images, or give the embedder a file of"):
        next(Lines(folder=folder).build().pictures())


def test_only_used_splits_need_files_and_all_missing_files_are_listed(folder):
    (folder / "val.jsonl").unlink()
    assert Lines(folder=folder, validation_split="test").build().splits() == ("train", "test")
    with pytest.raises(DataError) as error:
        Lines(folder=folder, images="photos").build()
    assert str(error.value).splitlines() == [
        "Lines: 2 files are missing:",
        f"  {folder}/val.jsonl  <- example.org/lines.zip",
        f"  {folder}/photos (a folder)  <- data.images names the folder of raw images",
        "  put the files there, or name others in [data] (`mmgen plugins lines` has the keys)",
    ]


def test_a_file_may_be_in_a_subfolder_gzipped_and_one_of_several(folder):
    (folder / "annotations").mkdir()
    (folder / "annotations/b.jsonl.gz").write_bytes(gzip.compress(b'{"id": "b", "image": 7}\n'))
    data = Lines(folder=folder, files={"val": ("b.jsonl", "test.jsonl")}, test_split="val").build()
    assert [example.id for example in data.split("val")] == ["b", "test-1", "test-2"]
    assert data.split("val")[0].inputs == {"image": "7"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "train-1"}', "duplicate id 'train-1'"),
        ('{"id": 7}', "id must be a valid string, not 7"),
    ],
)
def test_a_row_that_cannot_be_used_is_one_line_with_its_place(folder, line, message):
    (folder / "train.jsonl").write_text('{"id": "train-1"}\n\n' + line)
    assert refusal(Lines(folder=folder).build().split, "train") == f"{folder}/train.jsonl:3: {message}"


def test_boxes_are_the_same_pixels_in_the_probe_and_in_the_task(tmp_path):
    folder = published.flickr30k(tmp_path)
    caption, *_ = phrases.flickr30k(folder, [Example("a", {"image": "1000"})], "image", "caption")
    example, *_ = Flickr30kEntities(folder=folder).build().split("train")
    assert caption.text == example.inputs["caption"]
    men, hat = caption.phrases
    assert men.boxes == ((0.1, 0.1, 0.3, 0.5), (0.2, 0.2, 0.5, 1.0))  # pixels count from 1: 11 of 100 is 0.1
    around = tuple(edge(box[place] for box in men.boxes) for place, edge in enumerate((min, min, max, max)))
    assert example.labels["phrases"] == ((men.first, men.end, around), (hat.first, hat.end, *hat.boxes))


def test_boxes_outside_of_the_picture_are_left_out():
    annotation = Annotation(10, 10, {"1": [(-5, 0, 5, 20), (12, 0, 14, 5)], "2": [(12, 0, 14, 5)]})
    assert annotation.boxes() == {"1": [(0.0, 0.0, 0.5, 1.0)], "2": []}
    assert annotation.around() == {"1": (0.0, 0.0, 1.0, 1.0), "2": None}
