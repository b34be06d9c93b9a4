"""Cards: what a renderer may return, and how choices and boxes are written."""

import pytest
from pydantic import ValidationError

from mmgen.cards import Bar, Card, as_json, corners


@pytest.mark.parametrize(
    "make",
    [
        lambda: Card(line=3),
        lambda: Bar("red", 62),
        lambda: Card(box=(0, 0, 1)),
        lambda: Card(box=(0, 0, 1, float("inf"))),
        lambda: Card(objects=(-1,)),
    ],
)
def test_what_a_page_cannot_show_is_an_error_where_it_is_made(make):
    with pytest.raises(ValidationError):
        make()


def test_boxes_and_values_as_text():
    assert corners((0, 0.25, 1 / 3, 1)) == "[0.000, 0.250, 0.333, 1.000]"
    assert as_json({"label": "grün"}) == '{"label": "grün"}'
