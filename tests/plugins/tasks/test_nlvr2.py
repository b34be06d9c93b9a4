"""NLVR2's files and settings, and its result file."""

import json

import pytest
from kit import published
from mmgen_tasks import Nlvr2

from mmgen.errors import DataError
from mmgen.examples import All
from mmgen.testing import DatasetSuite


class TestNlvr2(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.nlvr2(tmp_path)

    def config(self):
        return Nlvr2(folder=self.folder, images="images")


def test_examples(tmp_path):
    dataset = Nlvr2(folder=published.nlvr2(tmp_path)).build()
    first, second = dataset.split("dev")
    assert first.id == "dev-850-0-0" and first.targets == ()
    assert first.inputs == {"image": All(("dev-850-0-img0", "dev-850-0-img1")), "statement": "There is a dog."}
    assert (first.labels, second.labels) == ({"truth": True}, {"truth": False})
    assert first.facts == second.facts == {"group": "dev-850--0"}
    assert dataset.vocabularies() == {"truth": ("False", "True")}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"identifier": "dev-850-0-0", "sentence": "A"}, "duplicate identifier 'dev-850-0-0'"),
        ({"identifier": "dev-1-0-0", "sentence": "A", "label": "yes"}, 'label must be "True" or "False", not \'yes\''),
    ],
)
def test_lines_that_cannot_be_used(tmp_path, row, message):
    published.nlvr2(tmp_path)
    with (tmp_path / "dev.json").open("a") as file:
        file.write("\n" + json.dumps(row))
    with pytest.raises(DataError) as error:
        Nlvr2(folder=tmp_path).build().split("dev")
    assert str(error.value) == f"{tmp_path}/dev.json:4: {message}"


def test_a_hidden_label_is_absent(tmp_path):
    published.nlvr2(tmp_path)
    (tmp_path / "test1.json").write_text(json.dumps({"identifier": "test1-1-0-0", "sentence": "A"}))
    assert Nlvr2(folder=tmp_path).build().split("test1")[0].labels == {}


def test_an_example_needs_both_its_pictures(tmp_path, caplog):
    published.nlvr2(tmp_path)
    (tmp_path / "images/dev-850-1-img1.png").unlink()
    dataset = Nlvr2(folder=tmp_path, images="images").build()
    assert len(dataset.split("dev")) == 1
    assert caplog.messages == ["NLVR2 dev: left out 1 example without a picture"]
