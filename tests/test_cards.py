"""Cards: what a renderer may return, and how choices and boxes are written."""

import pytest
from pydantic import ValidationError

from mmgen.cards import Bar, Card


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
