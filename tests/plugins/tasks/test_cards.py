"""Shared parts of tasks' cards: labels as bars, correct boxes, and objects that texts name."""

import pytest
from mmgen_tasks.cards import NamedObjects, label_card, overlap

from mmgen.cards import Bar, Card, Piece
from mmgen.examples import All, Example, Prediction


def test_a_label_has_bars_of_its_likeliest_answers_and_the_right_answers():
    shares = {"a": 0.1, "b": 0.6, "c": 0.2, "d": 0.004, "e": 0.09, "f": 0.006}
    card = label_card(Prediction("x", {"label": "b", "probabilities": shares}, 0.6), {"e": 0.0, "g": 0.3, "c": 0.9})
    assert card == Card(
        bars=(Bar("b", 0.6, chosen=True), Bar("c", 0.2, right=True), Bar("a", 0.1), Bar("e", 0.09), Bar("f", 0.006)),
        right=False,
        answers=("c", "g"),
    )


def test_a_label_without_probabilities_has_one_bar():
    assert label_card(Prediction("x", {"label": "red"}, 0.7), {}).bars == (Bar("red", 0.7, chosen=True),)


@pytest.mark.parametrize("width, right", [(0.2, True), (0.19, False)])
def test_a_box_is_right_with_an_overlap_of_at_least_half(width, right):
    assert overlap((0.0, 0.0, width, 1.0), (0.0, 0.0, 0.4, 1.0)) == (pytest.approx(width / 0.4), right)


def test_mentions_outside_of_a_text_are_left_out():
    named = NamedObjects()
    mentions = ((2, 9, (0,)), (2, 5, (3,)), (3, 4, (1,)))
    assert named.pieces("a cat", mentions) == (Piece("a "), Piece("cat", numbers=(1,)))
    assert named.objects == (3,)


def test_objects_are_numbered_in_the_order_in_which_texts_name_them():
    inputs = {"question": "why is the dog here?", "question_mentions": All(((11, 14, (2,)),)), "image": "a"}
    named = NamedObjects()
    assert named.texts(Example("x", inputs)) == {
        "question": (Piece("why is the "), Piece("dog", numbers=(1,)), Piece(" here?"))
    }
    assert named.pieces("both", ((0, 4, (0, 2)),)) == (Piece("both", numbers=(2, 1)),) and named.objects == (2, 0)
