"""Config classes that tasks about pictures share."""

from typing import Literal

import pytest
from mmgen_regions import Regions
from mmgen_text import Text
from mmgen_vl.configs import FileEach, without_regions
from pydantic import ValidationError


class Lines(FileEach):
    """One line per example."""

    type: Literal["lines"] = "lines"


def test_recipes_may_add_splits_and_only_those_in_use_are_read():
    config = Lines(folder="f", files={"mini": "mini.jsonl"}, test_split="mini")
    assert config.names() == ("train", "val", "test", "mini") and config.used() == ("train", "val", "mini")


@pytest.mark.parametrize(("key", "split"), [("train_split", "dev"), ("test_split", "trian")])
def test_a_split_that_is_not_there(key, split):
    with pytest.raises(ValidationError) as error:
        Lines(folder="f", **{key: split})
    assert f"{key}: lines has no split '{split}'; choose from: train, val, test" in str(error.value)


def test_a_split_must_be_a_word():
    with pytest.raises(ValidationError, match="pattern"):
        Lines(folder="f", files={"../x": "mini.jsonl"})


def test_an_objective_over_regions_needs_an_input_with_regions():
    inputs = {"image": Regions(), "caption": Text()}
    assert without_regions("image", inputs) == ""
    assert without_regions("caption", inputs, "classifies") == (
        "classifies the regions of 'caption'; give the step an input 'caption' of type \"regions\""
    )
