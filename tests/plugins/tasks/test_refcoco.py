"""RefCOCO's files: expressions from pickles that cannot run code, boxes from COCO's JSON."""

import json
import pickle

import pytest
from kit import published
from mmgen_tasks import Refcoco
from pydantic import ValidationError

from mmgen.errors import DataError
from mmgen.testing import DatasetSuite


class TestRefcoco(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.refcoco(tmp_path)

    def config(self):
        return Refcoco(folder=self.folder, images="images", test_split="testA")


def load_error(config: Refcoco) -> str:
    with pytest.raises(DataError) as error:
        config.build().split("train")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_expressions_of_every_protocol(tmp_path, protocol):
    dataset = Refcoco(folder=published.refcoco(tmp_path, protocol), test_split="testB").build()
    assert dataset.splits() == ("train", "val", "testB")
    first, second, third = dataset.split("testB")
    assert (first.id, first.inputs) == ("16", {"image": "3", "expression": "man in red"})
    assert first.labels == {"box": (0.1, 0.25, 0.4, 0.75)} and first.facts == {
        "image": "3",
        "category": "person",
        "ref": "30",
    }
    assert second.inputs["expression"] == "left man" and second.labels == first.labels
    assert third.labels == {"box": (0.505, 0.1, 0.755, 0.3)}


def test_expressions_as_json_in_the_folder_of_the_release(tmp_path):
    folder = published.refcoco(tmp_path / "refcoco+")
    (folder / "refs(unc).p").unlink()
    (folder / "refs(unc).json").write_text(json.dumps(published.refs(7)))
    assert len(Refcoco(folder=tmp_path).build().split("val")) == 3


def test_a_picture_has_the_boxes_of_all_its_things_cut_to_it(tmp_path):
    picture = next(iter(Refcoco(folder=published.refcoco(tmp_path), images="images").build().pictures()))
    assert (picture.key, picture.region_names) == ("0", ["person", "dog", "person"])
    assert picture.boxes == [(0.1, 0.25, 0.4, 0.75), (0.505, 0.1, 0.755, 0.3), (0.0, 0.0, 1.0, 0.5)]


def test_splits_are_those_of_their_authors(tmp_path):
    assert Refcoco(folder=tmp_path, release="refcocog").names() == ("train", "val", "test")
    with pytest.raises(
        ValidationError, match="test_split: RefCOCO\+ has no split 'test'; choose from: train, val, testA, testB"
    ):
        Refcoco(folder=tmp_path, test_split="test")


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        (
            lambda table: table["images"][1].update(width=0),
            ": images[1]: width must be greater than 0",
        ),
        (
            lambda table: table["annotations"].clear(),
            "refs[0]: ann_id 100 is not in the annotations of instances.json",
        ),
    ],
    ids=range(2),
)
def test_boxes_that_cannot_be_used(tmp_path, change, fragment):
    published.refcoco(tmp_path)
    table = published.instances()
    change(table)
    (tmp_path / "instances.json").write_text(json.dumps(table))
    assert fragment in load_error(Refcoco(folder=tmp_path))


def test_expressions_without_a_box_or_words_are_left_out_and_counted(tmp_path, caplog):
    published.refcoco(tmp_path)
    rows, table = published.refs(7), published.instances()
    rows[0]["sentences"][1]["sent"] = " "
    table["annotations"][1]["bbox"] = [200, 0, 10, 10]  # outside of the picture
    (tmp_path / "refs(unc).p").write_bytes(pickle.dumps(rows, 2))
    (tmp_path / "instances.json").write_text(json.dumps(table))
    dataset = Refcoco(folder=tmp_path).build()
    assert [example.id for example in dataset.split("train")] == ["7"]
    assert caplog.messages == ["RefCOCO+ train: left out 1 expression without a text, 1 expression without a box"]
    assert dataset.describe()["counts"]["train"] == {"expressions without a text": 1, "expressions without a box": 1}
