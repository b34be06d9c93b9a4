"""Captions whose phrases are known to be in places of the picture."""

import pytest
from mmgen_probes.phrases import flickr30k, known

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample

XML = """<annotation><size><width>100</width><height>50</height></size>
<object><name>3</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>51</xmax><ymax>26</ymax></bndbox></object></annotation>
"""


def test_facts_of_a_data_set():
    facts = {
        "captions": ["a red dog", "nothing"],
        "phrases": [[[2, 9, [1]]], []],
        "things": [{"box": [0, 0, 1, 1]}, {"box": [0, 0, 0.5, 0.5]}],
    }
    first, second = known([ResolvedExample("1", {"image": "7"}, facts=facts), ResolvedExample("2", {})], "caption")
    assert first.example.inputs == {"image": "7", "caption": "a red dog"}
    (phrase,) = first.phrases
    assert first.text[phrase.first : phrase.end] == "red dog" and phrase.boxes == ((0, 0, 0.5, 0.5),)
    assert second.phrases == () and second.parse == ()


def test_files_of_flickr30k_entities(tmp_path):
    examples = [ResolvedExample(key, {"image": key}) for key in ("pictures/7.JPG", "8")]
    with pytest.raises(DataError, match="has no folder Sentences; give the one that Flickr30k Entities unpacks to"):
        flickr30k(tmp_path, examples, "image", "caption")
    for folder, text in (("Sentences", "[/EN#3/animals a dog] of [/EN#9/other no box]\n"), ("Annotations", XML)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"7.{'txt' if folder == 'Sentences' else 'xml'}").write_text(text)
    (caption,) = flickr30k(tmp_path, examples, "image", "caption")  # the other picture has no files
    assert caption.text == "a dog of no box" and caption.example.inputs["caption"] == caption.text
    (phrase,) = caption.phrases  # a phrase without a box is left out
    assert (phrase.first, phrase.end, phrase.boxes) == (0, 5, ((0.0, 0.0, 0.5, 0.5),))
