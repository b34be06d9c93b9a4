"""Splits of RefCOCO's releases, and settings that exclude each other."""

import pytest
from mmgen_tasks.refcoco.config import Refcoco, RegionChoice
from pydantic import ValidationError


@pytest.mark.parametrize(
    ("settings", "splitter", "names"),
    [
        ({}, "unc", ("train", "val", "testA", "testB")),
        ({"release": "refcocog"}, "umd", ("train", "val", "test")),
        ({"release": "refcoco", "split_by": "google"}, "google", ("train", "val", "test")),
    ],
)
def test_splits_are_those_of_their_authors(settings, splitter, names):
    config = Refcoco(folder="f", **settings)
    assert (config.splitter(), config.names()) == (splitter, names)


def test_a_hidden_layer_that_is_not_there_cannot_be_initialised():
    with pytest.raises(ValidationError, match="init_from initialises the hidden layer, but transform = false removes"):
        RegionChoice(init_from="regions", transform=False)
