"""Configs of auxiliary losses."""

from mmgen_inputs import Grid, Text
from mmgen_objectives.tasks import RegionClasses


def test_it_needs_regions():
    config = RegionClasses(input="picture")
    message = "classifies the regions of 'picture'; give the step an input 'picture' of type \"regions\""
    assert config.errors({}) == message
    assert config.errors({"picture": Text()}) == message
    assert config.errors({"picture": Grid()}) == ""


def test_it_predicts_nothing():
    assert RegionClasses.model_fields["dropout"].default == 0.0
    assert RegionClasses().gives is None and RegionClasses().required_labels == ("objects",)
