"""The card of referring expressions: the chosen box beside the right box."""

import pytest
from mmgen_tasks.refcoco.card import RegionCard
from mmgen_tasks.refcoco.config import ChosenRegion

from mmgen.cards import Card
from mmgen.tensors import Example, Prediction
from mmgen.testing import RendererSuite

LEFT = (0.0, 0.0, 0.5, 0.5)


@pytest.mark.parametrize(
    "value, line, right",
    [
        ({"box": [0, 0, 0.25, 0.5], "index": 3}, "overlap 50\u202f%", True),
        ({"box": [0, 0, 0.24, 0.5], "index": 3}, "overlap 48\u202f%", False),
        ({"box": [0, 0, 0.5, 0.5], "index": 3, "picture": 0}, "overlap 100\u202f%", True),
        ({"box": [0, 0, 0.5, 0.5], "index": 3, "picture": 1}, "a region of picture 2", False),
    ],
)
def test_refcoco_shows_the_overlap_with_the_right_box(value, line, right):
    example = Example("r", {"expression": "left"}, (), {}, {"box": LEFT})
    card = RegionCard().card(example, Prediction("r", value, 0.25))
    assert card == Card(line=line, confidence=0.25, right=right, box=tuple(value["box"]), right_box=LEFT)


def test_refcoco_without_the_right_box_and_in_the_terminal():
    prediction = Prediction("r", {"box": [0, 0.25, 0.5, 1], "index": 3}, 0.25)
    card = RegionCard().card(Example("r", {}), prediction)
    assert card == Card(line="a region", confidence=0.25, box=(0, 0.25, 0.5, 1))
    assert RegionCard().line(Example("r", {}), prediction) == "[0.000, 0.250, 0.500, 1.000]"


class TestChosenRegion(RendererSuite):
    def config(self):
        return ChosenRegion()

    def examples(self):
        return [Example("r", {"expression": "left"}, (), {}, {"box": LEFT})]

    def predictions(self, examples):
        return [Prediction("r", {"box": [0, 0, 1, 0.5], "index": 0}, 0.5)]
