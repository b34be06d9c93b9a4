"""Cards: what a renderer may return, and how choices and boxes are written."""

import pytest

from mmgen.cards import Bar, Card, Piece, as_json, checked_card, corners, letter


def test_lists_become_tuples():
    card = checked_card(Card(bars=[Bar("red", 1)], box=[0, 0, 0.5, 1], texts={"caption": [Piece("a", numbers=[1])]}))
    assert card == Card(
        bars=(Bar("red", 1.0),), box=(0.0, 0.0, 0.5, 1.0), texts={"caption": (Piece("a", numbers=(1,)),)}
    )


@pytest.mark.parametrize(
    "card, problem",
    [
        ({"line": "red"}, "returned {'line': 'red'}; expected a mmgen.cards.Card"),
        (None, "returned None; expected a mmgen.cards.Card"),
        (Card(line=3), "returned a card with an invalid line, 3: input should be a valid string"),
        (
            Card(bars=(Bar("red", 62),)),
            "returned a card with an invalid bars.0.share, 62: input should be less than or equal to 1.000001",
        ),
        (Card(box=(0, 0, 1)), "returned a card with an invalid box.3, (0, 0, 1): field required"),
        (
            Card(box=(0, 0, 1, float("inf"))),
            "returned a card with an invalid box.3, inf: input should be a finite number",
        ),
        (
            Card(objects=(-1,)),
            "returned a card with an invalid objects.0, -1: input should be greater than or equal to 0",
        ),
    ],
)
def test_what_a_page_cannot_show_is_an_error(card, problem):
    with pytest.raises(ValueError) as caught:
        checked_card(card)
    assert str(caught.value) == problem


def test_choices_have_letters_and_then_numbers():
    assert [letter(place) for place in (0, 3, 25, 26)] == ["A", "D", "Z", "27"]


def test_boxes_and_values_as_text():
    assert corners((0, 0.25, 1 / 3, 1)) == "[0.000, 0.250, 0.333, 1.000]"
    assert as_json({"label": "grün"}) == '{"label": "grün"}'
