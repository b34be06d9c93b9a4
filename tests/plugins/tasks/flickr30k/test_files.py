"""Flickr30K Entities' files and settings, and its result file."""

import pytest
from kit import published
from kit.results import BOXES, assert_read_again, assert_refused, cells, score
from mmgen_inputs import Regions, Text
from mmgen_tasks import Flickr30kEntities, PhraseRecall
from mmgen_tasks.flickr30k.config import PhraseRegions
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


def test_files_that_are_missing(tmp_path):
    (tmp_path / "train.txt").write_text("1\n")
    (tmp_path / "Sentences").mkdir()
    with pytest.raises(DataError) as error:
        Flickr30kEntities(folder=tmp_path).build()
    source = "github.com/BryanPlummer/flickr30k_entities"
    assert str(error.value).splitlines() == [
        "Flickr30K Entities: 2 files are missing:",
        f"  {tmp_path}/val.txt  <- {source}, val.txt",
        f"  {tmp_path}/test.txt  <- {source}, test.txt",
        "  put the files there, or name other files in data.files",
        f"Flickr30K Entities: {tmp_path}/Annotations: no such folder; unpack annotations.zip of {source} "
        "in data.folder",
    ]
    published.flickr30k(tmp_path)
    (tmp_path / "train.txt").write_text("1000\n1\n")
    with pytest.raises(
        DataError, match=r"train.txt: 2 files of the split's images are missing \(first: .*Sentences/1.txt\)"
    ):
        Flickr30kEntities(folder=tmp_path).build().split("train")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("train.txt", "1000\n../../1", ":2: '../../1' is not an image name; use letters, digits, - and ."),
        ("Sentences/1000.txt", "a\n[/EN#1 men] b", ":2: '[/EN#1 men] b' is not a marked phrase"),
        ("Annotations/1000.xml", "<a>" * 20, ":1: over 16 nested elements"),
        (
            "Annotations/1000.xml",
            published.FLICKR_BOXES.replace("<xmin>61</xmin>", ""),
            ":7: a box has no xmin",
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
    with pytest.raises(DataError, match=r"1.xml:1: declares a document type, which annotations do not have"):
        read_annotation(tmp_path / "1.xml")


def test_a_name_is_the_text_before_anything_inside_it(tmp_path):
    odd = published.FLICKR_BOXES.replace("<name>2</name>", "<name>2<a>5</a> 7</name>")
    (tmp_path / "1.xml").write_text(odd)
    assert [*read_annotation(tmp_path / "1.xml").pixels] == ["1", "3", "2"]


IMAGE = Regions(fields=("image",))


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"caption": Text(fields=("caption",)), "image": IMAGE}, ""),
        ({"image": IMAGE}, "needs the phrases of 'caption'; give the step an input 'caption' of type \"text\""),
        (
            {"caption": Text(fields=("question",)), "image": IMAGE},
            "needs the phrases of 'caption', but that input reads 'question'; input and field must have the same name",
        ),
        (
            {"caption": Text(fields=("caption",), append_mask=True), "image": IMAGE},
            "needs the phrases of 'caption', which must end in a word; set append_mask = false for that input",
        ),
        (
            {"caption": Text(fields=("caption",))},
            "chooses among the regions of 'image'; give the step an input 'image' of type \"regions\"",
        ),
    ],
)
def test_inputs_that_do_not_fit(inputs, problem):
    assert PhraseRegions().errors(inputs) == problem


def test_phrases_are_scored_in_pixels_or_shares(files):
    ours = [{"id": n, "boxes": [[90, 90, 91, 91]] * n + [[0, 0, 50, 40]]} for n in range(3)]
    result = score(
        *files(ours_json=ours),
        *("--references", *files(right_json=BOXES)),
        *("--metric", "phrase_recall", "--set", "phrase_recall.by_phrase_type=true"),
    )
    assert {name: row[0] for name, row in cells(result.output).items() if name != "metric"} == {
        "people": "33.33",
        "R@1": "33.33",
        "R@5": "100.00",
        "R@10": "100.00",
        "upper bound": "100.00",
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("r_json", '[{"id": 1, "boxes": 3}]', "results[0]: boxes must be a list of boxes, not a number")],
)
def test_results_that_cannot_be_used(files, name, text, words):
    (path,) = files(**{name: text})
    assert_refused(lambda: PhraseRecall.result_files().read(path, []), words)


def test_written_results_are_read_again(tmp_path):
    values = {"a": [[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 1.0, 1.0]], "b": []}
    assert_read_again(PhraseRecall, values, tmp_path / "w.txt")
