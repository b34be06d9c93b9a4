"""The published files of the tasks: what is read of small ones (golden/*.jsonl), and what cannot be used."""

import json
import pickle
from pathlib import Path

import pytest
from kit import golden, published
from kit.refusals import refusal
from mmgen_tasks import CocoCaptions, Flickr30kEntities, Nlvr2, Refcoco, Vcr, VcrTexts
from mmgen_vision.flickr30k_files import read_annotation
from pydantic import ValidationError

from mmgen.errors import DataError
from mmgen.testing import DatasetSuite

GOLDEN = Path(__file__).parent / "golden"


def change(file: Path, **values) -> None:
    """Other values in the first row of a file of JSON lines."""
    first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([json.dumps(json.loads(first) | values), *rest]))


def captions(folder: Path) -> CocoCaptions:
    """Both files as one split, without images that are held out."""
    (published.coco_captions(folder) / "minival.txt").write_text("000000000011\n42\n\n")
    both = {"train": ("captions_train2014.json", "captions_val2014.json")}
    return CocoCaptions(folder=folder, files=both, held_out="minival.txt")


def hidden(folder: Path) -> Nlvr2:
    """The labels of its test are hidden."""
    change(published.nlvr2(folder) / "test1.json", label=None)
    return Nlvr2(folder=folder)


def with_one_picture(folder: Path) -> Nlvr2:
    """An example needs both its pictures."""
    (published.nlvr2(folder) / "images/dev-850-1-img1.png").unlink()
    return Nlvr2(folder=folder, images="images")


def griffins(folder: Path) -> Vcr:
    """Classes of COCO come first, in its order, whatever the files have; a question need not mention anything."""
    change(published.vcr(folder) / "train.jsonl", objects=["sphinx", "car", "griffin"], question=["Why", "?"])
    return Vcr(folder=folder, subtask="both")


def refcoco(folder: Path, protocol: int = 0) -> Refcoco:
    return Refcoco(folder=published.refcoco(folder, protocol), test_split="testB", images="images")


def refcoco_as_json(folder: Path) -> Refcoco:
    """In the folder of the release."""
    (refcoco(folder / "refcoco+").folder / "refs(unc).p").unlink()
    (folder / "refcoco+/refs(unc).json").write_text(json.dumps(published.refs(7)))
    return Refcoco(folder=folder, test_split="testB", images="refcoco+/images")


def without_words_or_box(folder: Path) -> Refcoco:
    rows, table = published.refs(7), published.instances()
    rows[0]["sentences"][1]["sent"] = " "
    table["annotations"][1]["bbox"] = [200, 0, 10, 10]  # outside of the picture
    (published.refcoco(folder) / "refs(unc).p").write_bytes(pickle.dumps(rows, 2))
    (folder / "instances.json").write_text(json.dumps(table))
    return Refcoco(folder=folder)


def vcr(folder: Path) -> Vcr:
    return Vcr(folder=published.vcr(folder), images="vcr1images", subtask="every", test_split="test")


CASES = {
    "captions": lambda folder: CocoCaptions(folder=published.coco_captions(folder), images="images"),
    "captions_joined": captions,
    "nlvr2": lambda folder: Nlvr2(folder=published.nlvr2(folder), images="images"),
    "nlvr2_hidden": hidden,
    "nlvr2_lacking": with_one_picture,
    "vcr": vcr,
    "vcr_texts": lambda folder: VcrTexts(folder=published.vcr(folder), test_split="test"),
    "vcr_griffins": griffins,
    "refcoco": refcoco,
    "refcoco protocol 2": lambda folder: refcoco(folder, 2),
    "refcoco protocol 4": lambda folder: refcoco(folder, 4),
    "refcoco as json": refcoco_as_json,
    "refcoco_lacking": without_words_or_box,
    "flickr30k": lambda folder: Flickr30kEntities(folder=published.flickr30k(folder), images="images"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read(tmp_path, name):
    golden.check(GOLDEN / f"{name.partition(' ')[0]}.jsonl", golden.given(CASES[name](tmp_path).build()))


def test_splits_are_those_of_their_authors(tmp_path):
    assert Refcoco(folder=tmp_path, release="refcocog").names() == ("train", "val", "test")
    with pytest.raises(ValidationError, match=r"RefCOCO\+ has no split 'test'; choose from: train, val, testA, testB"):
        Refcoco(folder=tmp_path, test_split="test")


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "message"),
    [
        ("nlvr2", "train.json", '"True"', '"yes"', ':1: label must be "True" or "False", not \'yes\''),
        ("vcr", "train.jsonl", '[2], "see"', '[3], "see"', ":1: mentions object 3, but the still has 3 objects"),
        ("refcoco", "instances.json", '"width": 100', '"width": 0', ": images[0]: width must be greater than 0"),
        (
            "refcoco as json",
            "refcoco+/refs(unc).json",
            '"ann_id": 100',
            '"ann_id": 9',
            ": refs[0]: ann_id 9 is not in the annotations of instances.json; use two files of the same release",
        ),
        ("flickr30k", "train.txt", "1000", "../../1", ":1: '../../1' is not an image name; use letters, digits, - and"),
        (
            "flickr30k",
            "Sentences/1000.txt",
            "[/EN#2/clothing A",
            "[/EN#1",
            ":2: '[/EN#1 hat] .' is not a marked phrase",
        ),
        (
            "flickr30k",
            "Annotations/1000.xml",
            "<xmin>61</xmin>",
            "",
            ": invalid annotation: xmin must be a number, not 'nothing'",
        ),
    ],
)
def test_files_that_cannot_be_used(tmp_path, name, file, old, new, message):
    config, path = CASES[name](tmp_path), tmp_path / file
    assert old in (text := path.read_text())
    path.write_text(text.replace(old, new))
    with pytest.raises(DataError) as error:
        config.build().split("train")
    assert str(error.value).startswith(f"{path}{message}") and "\n" not in str(error.value)


@pytest.mark.parametrize("boxes", [[[0, 0, 1, 1]], [[5, 5, 5, 9, 1]] * 3], ids=["too few", "empty"])
def test_boxes_of_objects_that_cannot_be_used(tmp_path, boxes):
    dataset = vcr(tmp_path).build()
    path = tmp_path / "vcr1images/lsmdc_film/train_00.23@0.json"
    change(path, boxes=boxes)
    message = refusal(next, iter(dataset.pictures()))
    assert message == f"{path}: needs a name and a box inside of the picture for every object"


@pytest.mark.parametrize(
    "declared",
    [
        "<!DOCTYPE a [" + "".join(f"<!ENTITY b{n} '{f'&b{n - 1};' * 10}'>" for n in range(1, 12)) + "]><a>&b11;</a>",
        "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
        "<!DOCTYPE a SYSTEM 'http://example.org/a.dtd'><a/>",
    ],
    ids=["grows", "file", "network"],
)
def test_xml_that_declares_anything_is_not_read(tmp_path, declared):
    (tmp_path / "1.xml").write_text(declared)
    with pytest.raises(DataError, match=r"1.xml: invalid annotation: "):
        read_annotation(tmp_path / "1.xml")


class Made(DatasetSuite):
    """The data set of files that are made for each test."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        self.folder = tmp_path


class TestCocoCaptions(Made):
    def config(self):
        return CocoCaptions(folder=published.coco_captions(self.folder), images="images")


class TestNlvr2(Made):
    def config(self):
        return Nlvr2(folder=published.nlvr2(self.folder), images="images")


class TestVcr(Made):
    def config(self):
        return Vcr(folder=vcr(self.folder).folder, images="vcr1images", subtask="every", test_split="test")


class TestVcrTexts(Made):
    def config(self):
        return VcrTexts(folder=published.vcr(self.folder), images="vcr1images")


class TestRefcoco(Made):
    def config(self):
        return Refcoco(folder=refcoco(self.folder).folder, images="images", test_split="testA")


class TestFlickr30kEntities(Made):
    def config(self):
        return Flickr30kEntities(folder=published.flickr30k(self.folder), images="images")
