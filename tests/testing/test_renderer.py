"""The suite of renderers finds what a page or a person would stumble over."""

import random
from typing import Literal

import pytest

import mmgen
from mmgen.cards import Bar, Card, Choice, Piece
from mmgen.parts import Renderer
from mmgen.testing import RendererSuite, failures


class Shown(Renderer):
    """Shows a text as it is."""

    def card(self, example, prediction):
        return Card(line=prediction.text)

    def line(self, example, prediction):
        return prediction.text


class Plain(mmgen.RendererConfig):
    """Texts as they are."""

    type: Literal["plain"] = "plain"
    renders = frozenset({"text"})

    def build(self):
        return Shown()


def suite_failures(card=None, line=None, **declared):
    """What the suite finds of a renderer with another card, line or declaration: test -> what is wrong."""
    methods = {name: method for name, method in (("card", card), ("line", line)) if method}
    renderer = type("Other", (Shown,), methods)
    config = type("OtherConfig", (Plain,), {"__doc__": "Other.", "build": lambda self: renderer(), **declared})

    class TestOther(RendererSuite):
        def config(self):
            return config()

    return failures(TestOther)


def test_a_good_one_passes():
    assert suite_failures() == {}


@pytest.mark.parametrize(
    "changes, test, problem",
    [
        (
            {"renders": frozenset()},
            "test_renders_labels_and_datasets",
            "renders is frozenset(); expected a frozenset of kinds",
        ),
        (
            {"datasets": "scenes"},
            "test_renders_labels_and_datasets",
            "datasets is 'scenes'; expected a tuple of strings",
        ),
        (
            {"card": lambda self, example, prediction: Card(texts={"caption": (Piece("red"),)})},
            "test_texts_are_those_of_the_example",
            "the pieces of 'caption' are 'red'; the example has ",
        ),
        (
            {"card": lambda self, example, prediction: Card(choices=(Choice((Piece("it", numbers=(2,)),)),))},
            "test_numbers_refer_to_objects",
            "a piece has the number 2; there are 0 objects",
        ),
        (
            {"line": lambda self, example, prediction: "two\nlines"},
            "test_lines",
            "is 'two\\nlines'; expected one line of text",
        ),
        (
            {"card": lambda self, example, prediction: Card(bars=(Bar("red", 1.0, right=True),))},
            "test_without_labels_nothing_is_right_or_wrong",
            ", which has no labels, says what is right",
        ),
        (
            {"card": lambda self, example, prediction: Card(line=str(random.random()))},
            "test_is_deterministic",
            " differs the second time",
        ),
        (
            {"card": lambda self, example, prediction: {"line": prediction.text}},
            "test_is_deterministic",
            "expected a mmgen.cards.Card",
        ),
    ],
)
def test_what_is_wrong_is_reported(changes, test, problem):
    assert problem in suite_failures(**changes)[test]


def test_predictions_of_other_kinds_must_be_given():
    wrong = suite_failures(renders=frozenset({"label"}))
    assert wrong["test_lines"] == (
        "NotImplementedError: TestOther must define predictions(examples), which returns a mmgen.examples.Prediction "
        "for each example"
    )
