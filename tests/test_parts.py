"""Contracts of parts: what they do where an author overrides nothing."""

import pytest
import torch

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.parts import Dataset, Extractor, Picture
from mmgen.testing import Tiny


class Small(Dataset):
    def splits(self):
        return ("train",)

    def split(self, name):
        return [Example("a", {})]

    def describe(self):
        return {"name": "small"}


class Nothing(Extractor):
    fingerprint = {}

    def records(self, source, skip=frozenset()):
        yield from ()


def test_a_data_set_without_pictures_says_so():
    data = Small()
    with pytest.raises(DataError) as error:
        data.pictures()
    assert str(error.value) == "this data set has no raw images; give the embedder a file of features"
    assert data.vocabularies() == {}


def test_an_extractor_counts_what_has_a_length():
    pictures = [Picture("a", None)]
    assert Nothing().count(pictures) == 1 and Nothing().count(iter(pictures)) is None


def test_the_pooler_reads_the_first_slot():
    torch.manual_seed(0)
    backbone = Tiny(width=8).build(texts=["a dog"])
    backbone.add_pooler()
    states = torch.randn(2, 3, backbone.hidden_size)
    expected = torch.tanh(backbone.pooler.dense(states[:, 0]))
    assert torch.equal(backbone.pooled(states), expected) and not backbone.pooler.dense.bias.any()


def test_what_a_backbone_cannot_do_is_named():
    backbone = Tiny(width=8).build(texts=["a dog"])
    backbone.set_gradient_checkpointing(False)
    with pytest.raises(NotImplementedError, match="cannot recompute its layers"):
        backbone.set_gradient_checkpointing(True)


def test_texts_are_tokenised_without_special_tokens():
    backbone = Tiny(width=8).build(texts=["a dog"])
    assert backbone.decode_text([backbone.start_id, *backbone.encode_text("a dog"), backbone.end_id]) == "a dog"
