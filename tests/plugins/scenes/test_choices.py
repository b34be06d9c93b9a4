"""Drawn choices."""

import math
import re
from collections import Counter

import pytest
from mmgen_scenes.tasks import SceneChoices
from mmgen_scenes.world import COLORS

from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    return SceneChoices(train_size=150, val_size=1, test_size=5).build()


class TestSceneChoices(DatasetSuite):
    def config(self):
        return SceneChoices(train_size=4, val_size=1, test_size=1, image_size=64, subtask="every")


COLOR = f"({'|'.join(COLORS)})"


def middle(thing):
    x0, y0, x1, y1 = thing["box"]
    return (x0 + x1) / 2, (y0 + y1) / 2


def nearest(origin, things):
    """Of the other things."""
    others = [thing for thing in things if thing is not origin]
    return min(others, key=lambda thing: math.dist(middle(thing), middle(origin)), default=None)


def parse(pattern, text, things):
    """The things and words of a text that fits a pattern, where "_" is a thing; None for another text."""
    match = re.fullmatch(pattern.replace("_", r"\[(\d)\]"), text)
    return match and [things[int(group)] if group.isdigit() else group for group in match.groups()]


def first_in_direction(origin, things, facing=None):
    """The nearest thing in a cone in front of a thing."""
    sign = 1 if (facing or origin["facing"]) == "right" else -1
    run = {id(thing): (middle(thing)[0] - middle(origin)[0]) * sign for thing in things}
    in_cone = [t for t in things if run[id(t)] > 0.05 and abs(middle(t)[1] - middle(origin)[1]) < 0.7 * run[id(t)]]
    return nearest(origin, in_cone)


def is_true(text, things):
    """Whether an answer or a rationale is true of the things, by its words."""
    if match := parse(r"_ is (?:looking at|going towards) _\.", text, things):
        return first_in_direction(match[0], things) is match[1]
    if match := parse(r"_ is next to _\.", text, things):
        return nearest(match[1], things) is match[0]
    if match := parse(r"_ has the same color as _\.", text, things):
        return match[0]["color"] == match[1]["color"]
    if match := parse(r"_ is on the same side as _\.", text, things):
        return match[0]["side"] == match[1]["side"] != ""
    if match := parse(rf"_ faces (left|right), and _, which is {COLOR}, is the first thing that way\.", text, things):
        origin, way, target, color = match
        return (
            origin["facing"] == way and target["color"] == color and first_in_direction(origin, things, way) is target
        )
    if match := parse(rf"_, which is {COLOR}, is closer to _, which is {COLOR}, than anything else\.", text, things):
        target, color, origin, color_of_origin = match
        return nearest(origin, things) is target and (target["color"], origin["color"]) == (color, color_of_origin)
    if match := parse(rf"_ is {COLOR}, and so is _\.", text, things):
        return match[0]["color"] == match[1] == match[2]["color"]
    target, color, way, origin = parse(rf"_, which is {COLOR}, is on the (left|right), and so is _\.", text, things)
    return target["color"] == color and target["side"] == origin["side"] == way


def mark_mentions(text, mentions):
    """A text with numbers in place of its mentions: "what is [2] looking at?"."""
    for start, end, (thing,) in sorted(mentions, reverse=True):
        text = f"{text[:start].removesuffix('the ')}[{thing}]{text[end:]}"
    return text


def test_one_choice_of_four_is_true(data):
    for example in data.split("train"):
        things, labels = example.facts["things"], example.labels
        texts = [mark_mentions(*choice) for choice in zip(labels["choices"], labels["choice_mentions"], strict=True)]
        assert [is_true(text, things) for text in texts] == [place == labels["choice"] for place in range(4)], texts
        assert len(set(labels["choices"])) == 4


def test_right_choices_are_at_any_position_and_of_every_form(data):
    places = Counter(example.labels["choice"] for example in data.split("train"))
    assert max(places.values()) < 1.4 * min(places.values())
    forms = Counter(example.facts["form"] for example in data.split("train"))
    assert set(forms) == {"looking", "going", "next to", "color", "side"} and min(forms.values()) > 10


def test_mentions_name_kinds_and_forms_and_subtasks_can_be_chosen():
    every = SceneChoices(train_size=20).build()
    for forms, subtask in ((("color", "side"), "answer"), (("color",), "rationale")):
        data = SceneChoices(train_size=20, forms=forms, subtask=subtask).build()
        assert {example.facts["form"] for example in data.split("train")} == {*forms}
        assert {example.facts["asks"] for example in data.split("train")} == {subtask}
        pictures = [[picture.boxes for picture in drawn.pictures()] for drawn in (data, every)]
        assert pictures[0] == pictures[1]
        for example in data.split("train"):
            kinds = [thing["kind"] for thing in example.facts["things"]]
            assert example.labels["objects"] == tuple(kinds) and example.labels["choice"] in range(4)
            texts = [example.inputs["question"], *example.labels["choices"]]
            spans = [example.inputs["question_mentions"].values, *example.labels["choice_mentions"]]
            for text, mentions in zip(texts, spans, strict=True):
                assert [text[first:end] for first, end, _ in mentions] == [kinds[n] for *_, (n,) in mentions]
