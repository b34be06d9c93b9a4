"""Configs of auxiliary losses."""

from mmgen_grid import Grid
from mmgen_objectives.auxiliary import RegionClasses
from mmgen_text import Text


def test_it_needs_regions():
    config = RegionClasses(input="picture")
    message = "classifies the regions of 'picture'; give the step an input 'picture' of type \"regions\""
    assert config.errors({}) == message
    assert config.errors({"picture": Text()}) == message
    assert config.errors({"picture": Grid()}) == ""


def test_it_predicts_nothing():
    assert RegionClasses.model_fields["dropout"].default == 0.0
    assert RegionClasses().gives is None and RegionClasses().required_labels == ("objects",)
