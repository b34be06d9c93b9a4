"""Where an input gets its pictures from."""

import numpy as np
import pytest
from mmgen_inputs.picture_reader import PictureSource
from PIL import Image

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.parts import Picture


def image():
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[:, :3] = 250
    return Image.fromarray(pixels)


class Source(PictureSource):
    def read(self, example):
        return [self.picture(value, example.id) for value in self.shown(example)]

    def collate(self, items):
        return {}


def source():
    built = Source("image")
    built.pictures = {"p": Picture("p", image)}
    return built


def example(value):
    return ResolvedExample("e", {"image": value, "caption": "a dog on the left"})


def test_a_picture_is_that_of_its_key_or_itself():
    (from_key,) = source().read(example("p"))
    picture = Picture("q", image)
    assert from_key.key == "p" and source().read(example(picture)) == [picture]
    assert source().identity("p") == "p" and source().identity(picture) == id(picture)


def test_what_is_no_picture_is_named():
    for value, message in (
        ("q", "image of 'e': no picture has the key 'q'; give a picture of the data, or a file"),
        (5, "image of 'e' is 5; expected a picture or its key"),
    ):
        with pytest.raises(DataError) as error:
            source().read(example(value))
        assert str(error.value) == message
    with pytest.raises(DataError, match="example 'e' has no image; its inputs are: caption"):
        source().shown(ResolvedExample("e", {"caption": "a dog"}))
