"""The picture of an example."""

import pytest
from mmgen_vision.pictures import picture_of

from mmgen.errors import DataError
from mmgen.examples import All, Example
from mmgen.parts import Picture


def test_the_first_input_that_is_a_picture_counts():
    pictures = {key: Picture(key, lambda: None) for key in ("7", "8")}
    example = Example("e", {"caption": "a dog", "image": All(("8", "7"))})
    assert picture_of(example, pictures, "score") is pictures["8"]
    with pytest.raises(DataError) as error:
        picture_of(Example("e", {"caption": "a dog"}), pictures, "score")
    assert str(error.value) == "score: example 'e' has no picture; the data set needs raw images (data.images)"
