"""The limit of pictures per example."""

import pytest

from mmgen.errors import DataError
from mmgen.examples import All, Example
from mmgen.features.regions import check_picture_count

TWO = Example("a", {"image": All(("1", "2"))})


def test_more_pictures_than_token_types():
    check_picture_count(TWO, "image", 2)
    check_picture_count(TWO, "image", None)
    with pytest.raises(DataError) as error:
        check_picture_count(TWO, "image", 1)
    assert str(error.value) == (
        "example 'a' shows 2 pictures, but the encoder has token types for 1; show fewer, or set extra_token_types of "
        "the backbone"
    )
