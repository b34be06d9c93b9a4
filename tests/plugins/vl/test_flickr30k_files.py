"""Files of Flickr30K Entities have one parser: task and probe see the same words and boxes, and the same errors."""

import pytest
from kit import published
from mmgen_probes import phrases
from mmgen_tasks import Flickr30kEntities
from mmgen_vl.flickr30k_files import Annotation, read_annotation

from mmgen.errors import DataError
from mmgen.tensors import Example


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


@pytest.mark.parametrize("read", [read_by_probe, read_by_task])
def test_latin_1_is_one_line_with_the_file(tmp_path, read):
    folder = published.flickr30k(tmp_path)
    path = folder / "Sentences/1000.txt"
    path.write_bytes("A plain line .\n[/EN#1/people A señora] .\n".encode("latin-1"))
    assert refusal(read, folder) == f"{path}:2: the encoding is not UTF-8; save the file as UTF-8"
    published.flickr30k(tmp_path)
    path = folder / "Annotations/1000.xml"
    path.write_bytes(path.read_bytes().replace(b"1000.jpg", "señora.jpg".encode("latin-1")))
    assert refusal(read, folder) == f"{path}:2: invalid XML: not well-formed (invalid token)"


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
