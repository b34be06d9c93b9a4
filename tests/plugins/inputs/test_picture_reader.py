"""What the reader of pictures refuses, and where pictures and boxes come from."""

import numpy as np
import pytest
from kit.refusals import refusal
from kit.stored import Words
from mmgen_extractors import Roi
from mmgen_inputs import Regions
from mmgen_inputs.pictures import Pictures
from PIL import Image

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.features.extract import extract
from mmgen.parts import Picture

ROI = Roi(model="test_resnet", image_size=64, spread=2)
BOXES = [(0.0, 0.0, 0.5, 0.5), (0.25, 0.5, 1.0, 1.0)]


def image():
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8))


def reader(pictures=(), **settings):
    embedder = Pictures(embedder=Regions(), extractor=ROI, fields=("image",), **settings).build(Words())
    embedder.prepare({picture.key: picture for picture in (Picture("p", image), *pictures)})
    return embedder.reader


def example(value, **inputs):
    return ResolvedExample("e", {"image": value, **inputs})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("q", "image of 'e': no picture has the key 'q'; give a picture of the data, or a file"),
        (5, "image of 'e' is 5; expected a picture or its key"),
        (Picture("empty", image, []), "picture 'empty' has no boxes; leave the picture out, or give boxes"),
    ],
)
def test_values_that_are_no_pictures(value, message):
    assert refusal(reader().read, example(value)) == message


def test_a_picture_that_cannot_be_opened():
    def damaged():
        raise OSError("truncated")

    with pytest.raises(DataError, match="image of 'e': truncated"):
        reader([Picture("bad", damaged)]).read(example("bad"))


def test_slots_are_counted_without_opening_pictures():
    def opened():
        raise AssertionError

    opens_nothing = reader()
    opens_nothing.pictures = {"p": Picture("p", opened)}
    assert opens_nothing.slots("p") == 5
    with pytest.raises(DataError, match="image of 'c': no picture has the key 'q'"):
        opens_nothing.read(ResolvedExample("c", {"image": "q"}))
    with pytest.raises(DataError, match="example 'e' has no image; its inputs are: caption"):
        opens_nothing.read(ResolvedExample("e", {"caption": "a dog"}))


def test_boxes_of_a_store_in_place_of_those_of_the_data(tmp_path):
    extract(ROI.build(), [Picture("p", image, BOXES, ["cat", "dog"])], tmp_path / "boxes.h5")
    with_boxes = reader([Picture("q", image)], boxes=tmp_path / "boxes.h5")
    _, (seen,) = with_boxes.read(example("p"))
    assert np.allclose(seen.boxes, BOXES) and with_boxes.regions_of("p").region_names == ("cat", "dog")
    with pytest.raises(DataError, match=r"boxes.h5: no features for image 'q'"):
        with_boxes.read(example("q"))


def test_a_picture_is_that_of_its_key_or_itself():
    picture = Picture("q", image)
    assert reader().identity("p") == "p" and reader().identity(picture) == id(picture)
    assert np.array_equal(reader().read(example(picture))[1][0].pixels, reader().read(example("p"))[1][0].pixels)
