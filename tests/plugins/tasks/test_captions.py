"""COCO's captions from their published files."""

import json

import pytest
from kit import published
from mmgen_tasks import CocoCaptions

import mmgen.testing

TRAIN = [(9, "a dog"), (9, "a brown dog "), (25, "two cats"), (30, "  ")]
VAL = [(42, "a boat"), (25, "cats again")]


def write(folder, name, captions):
    rows = [{"image_id": image, "id": n, "caption": text} for n, (image, text) in enumerate(captions)]
    (folder / name).write_text(json.dumps({"images": [], "annotations": rows}))


@pytest.fixture
def files(tmp_path):
    write(tmp_path, "captions_train2014.json", TRAIN)
    write(tmp_path, "captions_val2014.json", VAL)
    return tmp_path


class TestCocoCaptions(mmgen.testing.DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.coco_captions(tmp_path)

    def config(self):
        return CocoCaptions(folder=self.folder, images="images")


def test_an_example_is_an_image_with_all_its_captions(files):
    train = CocoCaptions(folder=files).build().split("train")
    assert [(e.id, e.inputs["image"], e.inputs["caption"]) for e in train] == [
        ("train-9", "9", ("a dog", "a brown dog")),
        ("train-25", "25", ("two cats",)),
    ]
    assert train[0].targets == ("a dog", "a brown dog")


def test_a_repeated_caption_is_counted(files, caplog):
    write(files, "captions_train2014.json", TRAIN)
    (files / "again.json").write_text((files / "captions_train2014.json").read_text())
    both = {"train": ("captions_train2014.json", "again.json")}
    dataset = CocoCaptions(folder=files, files=both).build()
    assert [e.inputs["caption"] for e in dataset.split("train")] == [("a dog", "a brown dog"), ("two cats",)]
    assert caplog.messages == ["COCO captions train: left out 2 empty captions, 3 repeated captions"]


def test_several_files_per_split_and_excluded_images(files):
    (files / "minival.txt").write_text("000000000025\n42\n\n")
    both = ("captions_train2014.json", "captions_val2014.json")
    dataset = CocoCaptions(folder=files, files={"train": both}, held_out="minival.txt").build()
    assert [e.id for e in dataset.split("train")] == ["train-9"]
    assert [e.id for e in dataset.split("val")] == ["val-42", "val-25"]
