"""Texts as an input: what its reader makes of them."""

import toys

from mmgen.tensors import Example


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
