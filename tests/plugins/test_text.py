"""Texts as an input: what its reader makes of them."""

import random

import toys
from mmgen_text import Text

from mmgen.tensors import Example, Hiding


def test_a_text_that_comes_again_is_not_tokenised_again(monkeypatch):
    reader = toys.model().embedders["caption"].reader
    monkeypatch.setattr(reader, "max_tokens", 3)
    example = Example("x", {"caption": "the red ball near the tree"})
    expected = reader.tokenizer("the red ball", add_special_tokens=False)["input_ids"]
    first = reader.read(example).tolist()
    monkeypatch.setattr(reader, "tokenizer", None)
    assert first == reader.read(example).tolist() == expected


def test_no_more_texts_are_remembered_than_the_limit(monkeypatch):
    monkeypatch.setattr("mmgen_text.embedder.REMEMBERED", 4)
    reader = toys.model().embedders["caption"].reader
    for number in range(30):
        reader.read(Example(str(number), {"caption": "ball " * number}))
        assert len(reader._known) <= 4


def test_a_mask_is_appended_and_never_hidden():
    backbone = toys.model().backbone
    reader = Text(reads=("q",), max_tokens=2, append_mask=True).build(backbone).reader
    item = reader.read(Example("x", {"q": "the red ball near the tree"}))
    assert len(item) == 3 and item[-1] == backbone.mask_id
    for whole_words in (False, True):
        hidden, labels = reader.hide(item, random.Random(0), Hiding(1.0, (1.0, 0.0), whole_words))
        assert labels.tolist() == [*item[:2].tolist(), -100] and hidden[-1] == backbone.mask_id
    assert reader.slots(Example("x", {"q": "what is it"})) == 3
    told = Text(reads=("q",), append_mask=True).build(backbone).describe(Example("x", {"q": "red ball"}))
    assert len(told["labels"]) == len(told["spans"]) + 1
