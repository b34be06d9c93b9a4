"""The keys of COCO's captions."""

import pytest
from mmgen_tasks.captions.config import CocoCaptions
from pydantic import ValidationError


def test_splits_are_the_published_ones_and_those_of_the_files():
    assert CocoCaptions(folder="x").names() == ("train", "val")
    config = CocoCaptions(folder="x", files={"test": ("t.json",), "train": ("a.json", "b.json")})
    assert config.names() == ("train", "val", "test") and config.test_split == "val"


def test_the_name_of_a_split_is_a_name():
    with pytest.raises(ValidationError):
        CocoCaptions(folder="x", files={"no/name": ("a.json",)})
