"""Flickr30K Entities' files and settings, and its result file."""

import pytest
from kit import published
from mmgen_inputs import Regions
from mmgen_tasks import Flickr30kEntities
from mmgen_vision.flickr30k_files import parse_sentence, read_annotation

from mmgen.errors import DataError
from mmgen.testing import DatasetSuite


class TestFlickr30kEntities(DatasetSuite):
    @pytest.fixture(autouse=True)
    def write_files(self, tmp_path):
        self.folder = published.flickr30k(tmp_path)

    def config(self):
        return Flickr30kEntities(folder=self.folder, images="images")


def test_an_example_is_a_caption_in_training_and_a_phrase_in_scoring(tmp_path, caplog):
    dataset = Flickr30kEntities(folder=published.flickr30k(tmp_path)).build()
    first, second = dataset.split("train")
    caption = "Two men with a red hat sit on it ."
    assert (first.id, first.inputs) == ("1000-0", {"image": "1000", "caption": caption})
    men, hat = first.labels["phrases"]
    assert caption[men[0] : men[1]] == "Two men" and caption[hat[0] : hat[1]] == "a red hat"
    assert men[2] == (0.1, 0.1, 0.5, 1.0) and hat[2] == (0.6, 0.0, 0.8, 0.25)  # the union of the men's two boxes
    assert first.facts == {"image": "1000", "types": ["people", "clothing"]}
    assert second.id == "1000-1" and second.labels == {"phrases": ((0, 5, hat[2]),)}
    scored = dataset.split("test")
    assert [(example.id, example.facts["type"]) for example in scored] == [
        ("3000-0-0", "people"),
        ("3000-0-1", "clothing"),
        ("3000-1-0", "clothing"),
    ]
    assert [len(example.labels["phrases"]) for example in scored] == [1, 1, 1]
    left_out = "left out 1 phrase without a box, 1 caption without a phrase that has one"
    assert caplog.messages == [f"Flickr30K Entities {split}: {left_out}" for split in ("train", "test")]


def test_a_caption_without_marks_is_unchanged():
    assert parse_sentence("A [sic] b") == ("A [sic] b", [])


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("train.txt", "1000\n../../1", ":2: '../../1' is not an image name; use letters, digits, - and _"),
        ("Sentences/1000.txt", "a\n[/EN#1 men] b", ":2: '[/EN#1 men] b' is not a marked phrase"),
        ("Annotations/1000.xml", "<a>" * 20, ": invalid annotation: no element found: line 1"),
        (
            "Annotations/1000.xml",
            published.FLICKR_BOXES.replace("<xmin>61</xmin>", ""),
            ": invalid annotation: xmin must be a number, not 'nothing'",
        ),
    ],
)
def test_files_that_cannot_be_used(tmp_path, file, text, message):
    published.flickr30k(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(DataError) as error:
        Flickr30kEntities(folder=tmp_path).build().split("train")
    assert str(error.value).startswith(f"{tmp_path / file}{message}") and "\n" not in str(error.value)


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


IMAGE = Regions(fields=("image",))
