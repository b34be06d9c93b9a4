"""The config of regions with mentions: its optional fields and its parser of queries, for all embedders."""

from typing import Literal

import pytest
from mmgen_visualbert import VisualBertRegions
from mmgen_vl.mentions_config import MentionsConfig
from mmgen_vlbert import VlBertRegions

from mmgen.tensors import All


class Toy(MentionsConfig):
    type: Literal["toy"] = "toy"


@pytest.mark.parametrize("cls", [Toy, VisualBertRegions, VlBertRegions])
def test_a_field_for_each_text(cls):
    assert cls().optional_fields() == () and cls().first_object == 0
    config = cls(mentions=("question", "choice"))
    assert config.optional_fields() == ("question_mentions", "choice_mentions")
    assert config.from_json("question_mentions", [[12, 15, [0]]]) == All(((12, 15, (0,)),))
    with pytest.raises(ValueError, match="^7 is not a list of mentions, "):
        config.from_json("question_mentions", 7)


def test_the_fields_of_mentions_are_declared_once():
    for cls in (VisualBertRegions, VlBertRegions):
        assert not {"mentions", "first_object"} & cls.__annotations__.keys()
